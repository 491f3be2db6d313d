"""Ownership and permission checks for files that Theano loads, because loading them runs code.

Theano loads a file only if it belongs to this user, to root, or to a user or group that the flag
`cmodule.trusted` names, and if no other user may write to it. The compiledir must meet the same
conditions. In addition, base_compiledir must not be writable by everyone. Directories above
base_compiledir are not checked: users who may write to them can only add files of their own.
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
    "Remove the write permission of others (chmod go-w), name the user or the @group in the flag "
    "cmodule.trusted, or choose another base_compiledir"
)

# The messages that were logged as warnings.
warned: set[str] = set()


def warn_first(logger: logging.Logger, message: str, *arguments: object) -> None:
    """Log a message: the first message with this format string as a warning, others as debug."""
    logger.log(logging.DEBUG if message in warned else logging.WARNING, message, *arguments)
    warned.add(message)


def _find_numbers(names: list[str], find: Callable[[str], int]) -> frozenset[int]:
    """Return the IDs of users or groups; skip names that do not exist on this host.

    Args:
        names: names or IDs.
        find: returns the ID for a name, or raises KeyError.
    """
    numbers = set()
    for name in names:
        try:
            numbers.add(int(name) if name.isdecimal() else find(name))
        except KeyError:
            _logger.debug("cmodule.trusted: this host has no user or group %s", name)
    return frozenset(numbers)


@functools.cache
def _parse_trusted(flag: str) -> tuple[frozenset[int], frozenset[int]]:
    """Return two sets for a value of `cmodule.trusted`: the UIDs and the GIDs."""
    names = flag.replace(":", " ").split()
    users = [name for name in names if name[0] != "@"]
    groups = [name[1:] for name in names if name[0] == "@"]
    return (
        _find_numbers(users, lambda name: pwd.getpwnam(name).pw_uid),
        _find_numbers(groups, lambda name: grp.getgrnam(name).gr_gid),
    )


@functools.cache
def _list_groups(user: int) -> frozenset[int]:
    """Return the GIDs of a user's groups."""
    try:
        entry = pwd.getpwuid(user)
        return frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid))
    except KeyError:
        return frozenset()


def _is_trusted(user: int) -> bool:
    """Return whether a user is this user, root, or trusted by the flag `cmodule.trusted`."""
    users, groups = _parse_trusted(config.cmodule.trusted)
    return user in {0, os.geteuid(), *users} or not groups.isdisjoint(_list_groups(user))


@functools.cache
def _is_own_group(group: int, user: int) -> bool:
    """Return whether a group is a user's private group: it has the user's name and no other member.

    Systems with private groups set the umask to 002, so files are writable by the group.
    """
    try:
        entry, owner = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    return (entry.gr_name, entry.gr_gid) == (owner.pw_name, owner.pw_gid) and set(entry.gr_mem) <= {
        owner.pw_name
    }


def _find_name(number: int, find: Callable[[int], str]) -> str:
    """Return the name of a user or group, or the ID as text if there is no name."""
    try:
        return find(number)
    except KeyError:
        return str(number)


def find_risk(path: str | Path, status: os.stat_result, closed: bool = False) -> str | None:
    """Return the reason why an untrusted user could have written a file, or None.

    Args:
        path: the path of the file or directory.
        status: the result of stat for the path.
        closed: whether only the owner of the directory may enter the directory. If so, the
            permissions of the file are not checked.
    """
    if not _is_trusted(status.st_uid):
        owner = _find_name(status.st_uid, lambda number: pwd.getpwuid(number).pw_name)
        return f"{path} belongs to {owner}"
    if closed:
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"everyone may write to {path}"
    trusted_groups = _parse_trusted(config.cmodule.trusted)[1]
    if status.st_mode & stat.S_IWGRP and status.st_gid not in trusted_groups:
        # If the file has an access control list, the users and groups in the list may write too,
        # because the group's permission bits are then the mask of the list's entries.
        if _is_own_group(status.st_gid, status.st_uid) and not _has_acl(path):
            return None
        group = _find_name(status.st_gid, lambda number: grp.getgrgid(number).gr_name)
        return f"the group {group} may write to {path}"
    return None


def _has_acl(path: str | Path) -> bool:
    """Return whether a file has an access control list."""
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:
        return False


def find_compiledir_risk(path: Path, base: Path | None = None) -> str | None:
    """Return the reason why files of a compiledir must not be loaded, or None.

    Args:
        path: the compiledir.
        base: the directory that contains the compiledir; by default, the flag base_compiledir.

    Raises:
        OSError: stat failed.
    """
    base = base or Path(config.base_compiledir).resolve()
    if base in path.parents:
        status = base.stat()
        # Find the UID of root, because a container may not map root to 0. root owns /proc/sys.
        root = Path("/proc/sys").stat().st_uid if Path("/proc/sys").exists() else 0
        sticky = status.st_mode & stat.S_ISVTX and (
            status.st_uid == root or _is_trusted(status.st_uid)
        )
        if status.st_mode & stat.S_IWOTH and not sticky:
            return f"everyone may write to {base}"
    return find_risk(path, path.stat())


def may_load(path: str | Path, status: os.stat_result, closed: bool = False) -> bool:
    """Return whether a file may be loaded. If not, log the reason.

    The first reason in this process is a warning; later reasons have the level debug.

    Args:
        path: as for find_risk.
        status: as for find_risk.
        closed: as for find_risk.
    """
    reason = find_risk(path, status, closed)
    if reason:
        warn_first(
            _logger,
            "Files that another user could have written are not loaded: %s. %s.",
            reason,
            REMEDY,
        )
    return reason is None


def read_trusted(path: str | Path) -> bytes:
    """Read a file, after checks of the file and its directory.

    Raises:
        OSError: the file cannot be read.
        PermissionError: an untrusted user could have written the file.
    """
    path = Path(path)
    with path.open("rb") as file:
        directory = path.parent.stat()
        closed = not directory.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        if may_load(path.parent, directory) and may_load(path, os.fstat(file.fileno()), closed):
            return file.read()
    raise PermissionError(f"another user could have written {path}")
