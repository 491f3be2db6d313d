"""The files of compiled modules: which of them are loaded, and where new ones go."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.machinery
import importlib.util
import io
import logging
import os
import pickle
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from theano.gof.utils import replace_file
from theano.misc import compiledirs, trust

if TYPE_CHECKING:
    from theano.gof.cmodule import KeyData, ModuleCache

_logger = logging.getLogger("theano.gof.cmodule")

# In bytes: of a checksum, and what a disk must have left for one more module.
CHECKSUM_SIZE = 20
ROOM = 2**23
# In seconds.
A_DAY = 24 * 60 * 60

# The keys' files that could not be written as they are in memory.
unsaved: set[str] = set()
# The state that a cache's directory was in when it was last known whole, by its path.
states: dict[str, tuple[int, ...]] = {}


class Damaged(EOFError):
    """A file is not what was written."""


def make_checksum(content: bytes) -> bytes:
    """Return CHECKSUM_SIZE bytes that tell whether a file is damaged."""
    return hashlib.blake2b(content, digest_size=CHECKSUM_SIZE).digest()


def listed(directory: str) -> list[str] | None:
    """Return the names of the files in a module's directory, or None if it is not to be loaded.

    A library that cannot be read is none.
    """
    try:
        if trust.may_load(directory, Path(directory).stat()):
            with os.scandir(directory) as files:
                return [
                    file.name
                    for file in files
                    if not file.name.endswith(".so")
                    or (file.is_file() and os.access(file, os.R_OK))
                ]
    except OSError as error:
        _logger.debug("%s is passed over: %s", directory, error)
    return None


def save_key(key_data: KeyData) -> None:
    """Write a KeyData into its file, with the checksums of both it and its module.

    That of a seed is not written. If it cannot be written, that is logged. Whatever else pickle
    raises is raised.
    """
    if is_seed(key_data.key_pkl):
        unsaved.add(key_data.key_pkl)
        return
    if not hasattr(key_data, "checksum"):
        try:
            key_data.checksum = make_checksum(Path(key_data.get_entry()).read_bytes())
        except OSError:
            key_data.checksum = None
    pickled = pickle.dumps(key_data, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        # What pickle reads, and so an older Theano, ends before the checksum.
        replace_file(key_data.key_pkl, pickled + make_checksum(pickled))
    except OSError as error:
        unsaved.add(key_data.key_pkl)
        _logger.debug("%s is not written: %s", key_data.key_pkl, error)
    else:
        unsaved.discard(key_data.key_pkl)


def read_key(path: str) -> Any:
    """Return what save_key, or an older Theano, wrote.

    Raises:
        Damaged: it is not whole.
        OSError: it cannot be read, or another user could have written it.
        Exception: it cannot be unpickled, as when its classes are not imported.
    """
    content = trust.read(path)
    pickled = content[:-CHECKSUM_SIZE]
    if content[-CHECKSUM_SIZE:] == make_checksum(pickled):
        return pickle.loads(pickled)
    if content.endswith(pickle.STOP):
        stream = io.BytesIO(content)
        key_data = pickle.load(stream)
        if not stream.read() and hasattr(key_data, "module_hash"):
            return key_data
    raise Damaged(path)


def is_seed(path: str) -> bool:
    """Tell whether a file is one of a seed, which is only read."""
    return any(Path(path).is_relative_to(seed) for seed in compiledirs.seeds())


def add_seeds(cache: ModuleCache) -> None:
    """Have a cache know the modules of the seeds that it does not know, the first seed's first."""
    # Late, for this is imported by it.
    from theano.gof import cmodule  # noqa: PLC0415

    for key_pkl in (
        str(path) for seed in compiledirs.seeds() for path in seed.glob("tmp*/key.pkl")
    ):
        if key_pkl in cache.loaded_key_pkl:
            continue
        try:
            directory = str(Path(key_pkl).parent)
            entry = cmodule.module_name_from_dir(directory, files=listed(directory) or ())
            key_data = read_key(key_pkl)
            moved = cmodule.is_same_entry(entry, key_data.get_entry())
        except Exception as error:
            # As of the cache's own: its classes may be imported later.
            _logger.debug("%s is passed over: %r", key_pkl, error)
            continue
        if moved and key_data.module_hash not in cache.module_hash_to_key_data:
            key_data.entry, key_data.key_pkl = entry, key_pkl
            cache.module_hash_to_key_data[key_data.module_hash] = key_data
            cache.key_data_of[entry] = key_data
            cache.loaded_key_pkl.add(key_pkl)
            for key in key_data.keys:
                if cache.entry_from_key.setdefault(key, entry) == entry:
                    cache.similar_keys.setdefault(cmodule.get_safe_part(key), []).append(key)


def check(entry: str, key_data: KeyData | None) -> None:
    """Check a module's library before it is loaded.

    Args:
        entry: its path.
        key_data: what is known of it, if anything.

    Raises:
        Damaged: it is not what was compiled.
        OSError: it cannot be read, or another user could have written it.
    """
    content = trust.read(entry)
    checksum = getattr(key_data, "checksum", None)
    # The linker can write no file that is empty; an older Theano wrote no checksum.
    if checksum not in (None, make_checksum(content)):
        raise Damaged(entry)
    # Those not loaded for long will be removed, also where reading leaves no time.
    with contextlib.suppress(OSError):
        status = Path(entry).stat()
        if time.time() - status.st_atime > A_DAY:
            os.utime(entry, (time.time(), status.st_mtime))


def import_library(name: str, path: str) -> ModuleType:
    """Return the module that a library has, loaded without what else is in its directory.

    Args:
        name: the module's name.
        path: the library's.

    Raises:
        ImportError: it cannot be loaded.
    """
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def pass_over(cache: ModuleCache, entry: str, error: Exception) -> None:
    """Forget a module that cannot be loaded, and remove it if it is damaged.

    Args:
        cache: where it was found.
        entry: its library's path.
        error: why it is not loaded.
    """
    _logger.debug("%s is passed over: %r", entry, error)
    key_data = cache.key_data_of.pop(entry, None)
    if key_data is None:
        return
    key_data.delete_keys_from(cache.entry_from_key)
    if cache.module_hash_to_key_data.get(key_data.module_hash) is key_data:
        del cache.module_hash_to_key_data[key_data.module_hash]
    # Others may load what is as it was compiled.
    unknown = getattr(key_data, "checksum", None) is None and isinstance(error, ImportError)
    if (unknown or isinstance(error, Damaged)) and not is_seed(entry):
        shutil.rmtree(Path(entry).parent, ignore_errors=True)


def tell(directory: str, error: Exception) -> None:
    """Log that modules are compiled for this process alone: the first time as a warning."""
    trust.warn_first(
        _logger,
        "%s takes no more modules (%s): what it has not got is compiled for this process alone",
        directory,
        error,
    )


def new_directory(compiledir: str) -> str:
    """Return a new directory for a module: a private one, if the compiledir takes no more."""
    try:
        room = os.statvfs(compiledir)
        if room.f_bavail * room.f_frsize < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return tempfile.mkdtemp(dir=compiledir)
    except OSError as error:
        tell(compiledir, error)
        return tempfile.mkdtemp(dir=compiledirs.private())


def elsewhere(location: str, error: Exception) -> str:
    """Return a private directory in place of one that has no room for a module.

    Args:
        location: the one that was tried.
        error: what came of it; it is raised if there is room.
    """
    directory = Path(location)
    if any(directory.is_relative_to(path) for _, path in compiledirs.made):
        raise error
    if getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT):
        # g++ says it in the user's language.
        try:
            with tempfile.TemporaryFile(dir=directory) as file:
                file.write(bytes(ROOM))
        except OSError as refused:
            reason: Exception = refused
        else:
            raise error
    else:
        reason = error
    shutil.rmtree(directory, ignore_errors=True)
    tell(str(directory.parent), reason)
    return tempfile.mkdtemp(dir=compiledirs.private())


def state(cache: ModuleCache) -> tuple[int, ...]:
    """Return what is another where others have added modules, or keys can be read that could not.

    Those of classes can that were imported, or defined in a session, since then.
    """
    times = []
    with contextlib.suppress(OSError):
        times = [Path(path).stat().st_mtime_ns for path in (cache.dirname, *compiledirs.seeds())]
    return (*times, len(sys.modules), len(vars(sys.modules["__main__"])))


def refresh(cache: ModuleCache) -> None:
    """Have a cache know what others have added, with the lock on it.

    It looks at every module, which takes longer than to compile one where there are thousands.
    """
    if states.get(cache.dirname) != state(cache):
        cache.refresh(cleanup=False)
        states[cache.dirname] = state(cache)


def share(cache: ModuleCache, location: str) -> None:
    """Let those read a module that was added to a cache who may read that, and nobody else write.

    The lock on the cache is held since it was refreshed: nobody else has added another one.
    """
    states[cache.dirname] = state(cache)
    directory = Path(location)
    # What cannot be changed is as it is.
    with contextlib.suppress(OSError):
        for file in directory.iterdir():
            mode = file.stat().st_mode
            if mode & 0o022:
                file.chmod(mode & 0o755)
        directory.chmod(directory.parent.stat().st_mode & 0o755)
