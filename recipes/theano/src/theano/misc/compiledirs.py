"""Which directory is the compiledir."""

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
def private() -> str:
    """Make a directory that is removed when this process ends, and return it.

    Raises:
        OSError: there is no room for temporary files.
    """
    path = tempfile.mkdtemp(prefix="theano-")
    made.append((os.getpid(), path))
    return path


made: list[tuple[int, str]] = []


# From the start, and so after all that looks into it at exit.
@atexit.register
def remove_private() -> None:
    """Remove what private() made, unless that was before a fork."""
    for process, path in made:
        if process == os.getpid():
            shutil.rmtree(path, ignore_errors=True)


def choose(path: str) -> str:
    """Return the compiledir: a directory, or a private one if it cannot be used.

    A directory that cannot be written to serves what it has.

    Args:
        path: the directory; it is made if need be, as one that others cannot write to.

    Raises:
        ValueError: nor can a private one be made.
    """
    # That of a link may change, and modules are known by their paths.
    directory = Path(path).expanduser().resolve()
    try:
        for each in reversed([directory, *directory.parents]):
            if not each.exists():
                # Others may have made it now.
                each.mkdir(0o755, exist_ok=True)
        next(directory.iterdir(), None)
        reason = trust.why_not_compiledir(directory)
        remedy = trust.REMEDY
    except OSError as error:
        reason = str(error)
        remedy = "Choose another base_compiledir"
    if reason is None:
        return str(directory)
    try:
        found = private()
    except OSError as error:
        raise ValueError(f"{directory} cannot be the compiledir: {reason}; and {error}") from error
    _logger.warning(
        "%s is not used, and what is compiled is not kept: %s. %s.", directory, reason, remedy
    )
    return found


@functools.cache
def seeds() -> tuple[Path, ...]:
    """Return the compiledirs below the directories of `cmodule.seeds`, which are only read.

    What cannot be read is passed over, and what cannot be trusted, with a warning.
    """
    # Late, for this is imported by it.
    from theano.configdefaults import default_compiledirname  # noqa: PLC0415

    found = []
    for base in filter(None, config.cmodule.seeds.split(":")):
        directory = (Path(base).expanduser() / default_compiledirname()).resolve()
        try:
            reason = trust.why_not_compiledir(directory, directory.parent)
        except OSError as error:
            _logger.debug("%s is passed over: %s", directory, error)
            continue
        if reason:
            _logger.warning("%s is passed over: %s. %s.", directory, reason, trust.REMEDY)
        else:
            found.append(directory)
    return tuple(found)
