"""Who else could have written what is about to be loaded: it is code.

What this user or root wrote is loaded, and what those wrote whom the flag `cmodule.trusted` names,
if nobody else may write to it: the compiledir, what is in it, and not everyone to base_compiledir.
Who may write further above can only put there what is their own.
"""

from __future__ import annotations

import functools
import grp
import logging
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path

from theano.configparser import config

_logger = logging.getLogger("theano.misc.trust")

REMEDY = (
    "Take that right away (chmod go-w), name the user or the @group in the Theano flag "
    "cmodule.trusted, or choose another base_compiledir"
)

# The messages that were warnings.
told: set[str] = set()


def warn_first(logger: logging.Logger, message: str, *arguments: object) -> None:
    """Log a message: the first time as a warning, then to debug."""
    logger.log(logging.DEBUG if message in told else logging.WARNING, message, *arguments)
    told.add(message)


def _numbers(names: list[str], find: Callable[[str], int]) -> frozenset[int]:
    """Return the numbers of users or groups; one list can be of hosts that do not know all."""
    numbers = set()
    for name in names:
        try:
            numbers.add(int(name) if name.isdecimal() else find(name))
        except KeyError:
            _logger.debug("cmodule.trusted: nobody is %s", name)
    return frozenset(numbers)


@functools.cache
def _listed(flag: str) -> tuple[frozenset[int], frozenset[int]]:
    """Return the users and the groups that a value of `cmodule.trusted` names."""
    names = flag.replace(":", " ").split()
    users = [name for name in names if name[0] != "@"]
    groups = [name[1:] for name in names if name[0] == "@"]
    return (
        _numbers(users, lambda name: pwd.getpwnam(name).pw_uid),
        _numbers(groups, lambda name: grp.getgrnam(name).gr_gid),
    )


@functools.cache
def _groups_of(user: int) -> frozenset[int]:
    try:
        known = pwd.getpwuid(user)
        return frozenset(os.getgrouplist(known.pw_name, known.pw_gid))
    except KeyError:
        return frozenset()


def _is_trusted(user: int) -> bool:
    users, groups = _listed(config.cmodule.trusted)
    return user in {0, os.geteuid(), *users} or not groups.isdisjoint(_groups_of(user))


@functools.cache
def _is_own_group(group: int, user: int) -> bool:
    """Tell whether a group has but one user, whose name it has, as where the umask is 002."""
    try:
        known, owner = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    return (known.gr_name, known.gr_gid) == (owner.pw_name, owner.pw_gid) and set(known.gr_mem) <= {
        owner.pw_name
    }


def _name(number: int, find: Callable[[int], str]) -> str:
    try:
        return find(number)
    except KeyError:
        return str(number)


def why_not(path: str | Path, status: os.stat_result, closed: bool = False) -> str | None:
    """Return why something may be another user's, or None.

    Args:
        path: where it is.
        status: what stat said of it.
        closed: whether nobody else may enter its directory.
    """
    if not _is_trusted(status.st_uid):
        owner = _name(status.st_uid, lambda number: pwd.getpwuid(number).pw_name)
        return f"{path} belongs to {owner}"
    if closed:
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"everyone may write to {path}"
    if status.st_mode & stat.S_IWGRP and status.st_gid not in _listed(config.cmodule.trusted)[1]:
        # Where there is an access control list, these are the rights of whoever is on it.
        if _is_own_group(status.st_gid, status.st_uid) and not _has_list(path):
            return None
        group = _name(status.st_gid, lambda number: grp.getgrgid(number).gr_name)
        return f"the group {group} may write to {path}"
    return None


def _has_list(path: str | Path) -> bool:
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:
        return False


def why_not_compiledir(path: Path, base: Path | None = None) -> str | None:
    """Return why nothing is to be loaded from a compiledir, or None.

    Args:
        path: where it is.
        base: the directory of compiledirs that it belongs to, if it is not `base_compiledir`.

    Raises:
        OSError: it cannot be looked at.
    """
    base = base or Path(config.base_compiledir).resolve()
    if base in path.parents:
        status = base.stat()
        # Where root is unknown, as in a user's own container, /proc has the owner that root has.
        root = Path("/proc/sys").stat().st_uid if Path("/proc/sys").exists() else 0
        kept = status.st_mode & stat.S_ISVTX and (
            status.st_uid == root or _is_trusted(status.st_uid)
        )
        if status.st_mode & stat.S_IWOTH and not kept:
            return f"everyone may write to {base}"
    return why_not(path, path.stat())


def may_load(path: str | Path, status: os.stat_result, closed: bool = False) -> bool:
    """Tell whether something is to be loaded; if not, log why, the first time as a warning.

    The arguments are why_not's.
    """
    reason = why_not(path, status, closed)
    if reason:
        warn_first(
            _logger,
            "What another user could have written is not loaded: %s. %s.",
            reason,
            REMEDY,
        )
    return reason is None


def read(path: str | Path) -> bytes:
    """Return what is in a file that is to be loaded.

    Raises:
        OSError: it cannot be read.
        PermissionError: another user could have written it.
    """
    path = Path(path)
    with path.open("rb") as file:
        directory = path.parent.stat()
        closed = not directory.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        if may_load(path.parent, directory) and may_load(path, os.fstat(file.fileno()), closed):
            return file.read()
    raise PermissionError(f"another user could have written {path}")
