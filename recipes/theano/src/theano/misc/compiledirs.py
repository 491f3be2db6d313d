"""Choice of the compiledir (the configured or a private directory) and of the seed caches."""

from __future__ import annotations

import atexit
import functools
import logging
import os
import shutil
import tempfile
from pathlib import Path

from theano.configparser import config
from theano.misc import trust

_logger = logging.getLogger("theano.misc.compiledirs")


@functools.cache
def make_private_directory() -> str:
    """Make a private directory at the first call; it is removed when the process ends.

    A forked process uses the directory of its parent.

    Raises:
        OSError: there is no space for temporary files.
    """
    path = tempfile.mkdtemp(prefix="theano-")
    private_directories.append((os.getpid(), path))
    return path


# Pairs (PID, path): the process that made a private directory, and the directory.
private_directories: list[tuple[int, str]] = []


# Exit handlers run in reverse order of registration. This handler is registered early, so it runs
# after handlers that may use the directories.
@atexit.register
def remove_private_directories() -> None:
    """Remove the private directories of this process, but not its parent's after a fork."""
    for pid, path in private_directories:
        if pid == os.getpid():
            shutil.rmtree(path, ignore_errors=True)


def choose_compiledir(path: str) -> str:
    """Return the compiledir: the configured directory if it is usable, else a private directory.

    A read-only directory is usable: its modules are loaded.

    Args:
        path: the configured directory. If it does not exist, it is created with the mode 0o755.

    Raises:
        ValueError: the configured directory is not usable, and no private directory can be made.
    """
    # Resolve symlinks, because a module is identified by its path, and a symlink can change.
    directory = Path(path).expanduser().resolve()
    try:
        for ancestor in reversed([directory, *directory.parents]):
            if not ancestor.exists():
                # Another process may create it at the same time.
                ancestor.mkdir(0o755, exist_ok=True)
        next(directory.iterdir(), None)
        reason = trust.find_compiledir_risk(directory)
        remedy = trust.REMEDY
    except OSError as error:
        reason = str(error)
        remedy = "Choose another base_compiledir"
    if reason is None:
        return str(directory)
    try:
        private_directory = make_private_directory()
    except OSError as error:
        raise ValueError(f"{directory} cannot be the compiledir: {reason}; and {error}") from error
    _logger.warning(
        "%s is not used as compiledir, and this process's modules are not cached: %s. %s.",
        directory,
        reason,
        remedy,
    )
    return private_directory


@functools.cache
def list_seeds() -> tuple[Path, ...]:
    """Return the seed caches: read-only compiledirs below the directories of `cmodule.seeds`.

    Unreadable directories are ignored; untrusted directories are ignored with a warning.
    """
    # Import it here, because configdefaults imports this module.
    from theano.configdefaults import default_compiledirname  # noqa: PLC0415

    directories = []
    for base in filter(None, config.cmodule.seeds.split(":")):
        directory = (Path(base).expanduser() / default_compiledirname()).resolve()
        try:
            reason = trust.find_compiledir_risk(directory, directory.parent)
        except OSError as error:
            _logger.debug("%s is ignored: %s", directory, error)
            continue
        if reason:
            _logger.warning("%s is ignored: %s. %s.", directory, reason, trust.REMEDY)
        else:
            directories.append(directory)
    return tuple(directories)
