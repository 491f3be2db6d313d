"""Files of compiled modules: checksums, trust, seed caches, and fallbacks for full disks."""

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

from theano.gof.atomic_files import replace_file
from theano.misc import compiledirs, trust

if TYPE_CHECKING:
    from theano.gof.cmodule import KeyData, ModuleCache

_logger = logging.getLogger("theano.gof.cmodule")

# The size of a checksum, in bytes.
CHECKSUM_SIZE = 20
# The free space that a new module needs, in bytes.
ROOM = 2**23
# In seconds.
A_DAY = 24 * 60 * 60

# The paths of key files that could not be written, so the keys in memory are newer than the files.
unsaved: set[str] = set()
# Maps the directory of a module cache to the result of compute_cache_state after the last refresh.
states: dict[str, tuple[int, ...]] = {}


class Damaged(EOFError):
    """Raised if the content of a file differs from the content that Theano wrote."""


def make_checksum(content: bytes) -> bytes:
    """Return the checksum of a file's content: CHECKSUM_SIZE bytes."""
    return hashlib.blake2b(content, digest_size=CHECKSUM_SIZE).digest()


def list_module_files(directory: str) -> list[str] | None:
    """List the files in a module's directory, without libraries that cannot be read.

    Return None if the directory cannot be read, or if another user could have written it.
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
        _logger.debug("%s is ignored: %s", directory, error)
    return None


def save_key(key_data: KeyData) -> None:
    """Write a KeyData to its file, with the checksums of the key and of the module's library.

    Do not write to a seed cache. Log an OSError; do not catch other exceptions, such as pickle's.
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
        # The checksum is at the end, where the pickle.load of an older Theano ignores it.
        replace_file(key_data.key_pkl, pickled + make_checksum(pickled))
    except OSError as error:
        unsaved.add(key_data.key_pkl)
        _logger.debug("%s is not written: %s", key_data.key_pkl, error)
    else:
        unsaved.discard(key_data.key_pkl)


def read_key(path: str) -> Any:
    """Read a KeyData that save_key wrote, or that an older Theano wrote without a checksum.

    Raises:
        Damaged: the file is incomplete, or its content has changed.
        OSError: the file cannot be read, or another user could have written it.
        Exception: pickle failed, for example because the class of a key cannot be imported.
    """
    content = trust.read_trusted(path)
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
    """Return whether a file belongs to a seed cache, which is read-only."""
    return any(Path(path).is_relative_to(seed) for seed in compiledirs.list_seeds())


def add_seeds(cache: ModuleCache) -> None:
    """Add the modules of the seed caches to a module cache; earlier seed caches take precedence."""
    # Import it here, because cmodule imports this module.
    from theano.gof import cmodule  # noqa: PLC0415

    for key_pkl in (
        str(path) for seed in compiledirs.list_seeds() for path in seed.glob("tmp*/key.pkl")
    ):
        if key_pkl in cache.loaded_key_pkl:
            continue
        try:
            directory = str(Path(key_pkl).parent)
            entry = cmodule.module_name_from_dir(
                directory, files=list_module_files(directory) or ()
            )
            key_data = read_key(key_pkl)
            is_same_entry = cmodule.is_same_entry(entry, key_data.get_entry())
        except Exception as error:
            # Continue, as ModuleCache.refresh does: the program may import the classes of the keys
            # later.
            _logger.debug("%s is ignored: %r", key_pkl, error)
            continue
        if is_same_entry and key_data.module_hash not in cache.module_hash_to_key_data:
            key_data.entry, key_data.key_pkl = entry, key_pkl
            cache.module_hash_to_key_data[key_data.module_hash] = key_data
            cache.key_data_of[entry] = key_data
            cache.loaded_key_pkl.add(key_pkl)
            for key in key_data.keys:
                if cache.entry_from_key.setdefault(key, entry) == entry:
                    cache.similar_keys.setdefault(cmodule.get_safe_part(key), []).append(key)


def check_library(entry: str, key_data: KeyData | None) -> None:
    """Check the library of a module before it is loaded, and record the time of access.

    Args:
        entry: the path of the library.
        key_data: the module's KeyData, which has the checksum; None if the cache has no KeyData.

    Raises:
        Damaged: the library's checksum differs from the KeyData's checksum.
        OSError: the library cannot be read, or another user could have written it.
    """
    content = trust.read_trusted(entry)
    checksum = getattr(key_data, "checksum", None)
    # The KeyData of an older Theano has no checksum.
    if checksum not in (None, make_checksum(content)):
        raise Damaged(entry)
    # Theano removes the least recently used modules, but some mounts do not update access times.
    with contextlib.suppress(OSError):
        status = Path(entry).stat()
        if time.time() - status.st_atime > A_DAY:
            os.utime(entry, (time.time(), status.st_mtime))


def import_library(name: str, path: str) -> ModuleType:
    """Load a module from a library, without reading the library's directory.

    Args:
        name: the name of the module.
        path: the path of the library.

    Raises:
        ImportError: the library cannot be loaded.
    """
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def drop_module(cache: ModuleCache, entry: str, error: Exception) -> None:
    """Remove an unloadable module from a module cache; delete its files if they are damaged.

    Args:
        cache: the cache that contains the module.
        entry: the path of the module's library.
        error: the exception that loading the module raised.
    """
    _logger.debug("%s is ignored: %r", entry, error)
    key_data = cache.key_data_of.pop(entry, None)
    if key_data is None:
        return
    key_data.delete_keys_from(cache.entry_from_key)
    if cache.module_hash_to_key_data.get(key_data.module_hash) is key_data:
        del cache.module_hash_to_key_data[key_data.module_hash]
    # Keep a library whose checksum is right: another process may be able to load it.
    unverified = getattr(key_data, "checksum", None) is None and isinstance(error, ImportError)
    if (unverified or isinstance(error, Damaged)) and not is_seed(entry):
        shutil.rmtree(Path(entry).parent, ignore_errors=True)


def warn_uncached(directory: str, error: Exception) -> None:
    """Log that new modules are not cached: the first time as a warning, then at level debug.

    Args:
        directory: the directory that takes no more modules.
        error: the reason.
    """
    trust.warn_first(
        _logger,
        "%s takes no more modules (%s): this process compiles new modules for itself and does not "
        "cache them",
        directory,
        error,
    )


def has_room(directory: str) -> bool:
    """Return whether a directory has space for a new module.

    Raises:
        OSError: the file system cannot be examined.
    """
    space = os.statvfs(directory)
    return space.f_bavail * space.f_frsize >= ROOM


def make_module_directory(compiledir: str) -> str:
    """Make a directory for a module in the compiledir, or in a private directory if that fails."""
    try:
        if not has_room(compiledir):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return tempfile.mkdtemp(dir=compiledir)
    except OSError as error:
        warn_uncached(compiledir, error)
        return tempfile.mkdtemp(dir=compiledirs.make_private_directory())


def replace_full_directory(location: str, error: Exception) -> str:
    """Make a private directory for a module whose compilation failed because the disk is full.

    Args:
        location: the module's directory. It is removed if it has no space.
        error: the exception that the compilation raised.

    Raises:
        Exception: `error`, if the directory has space or is itself private.
    """
    directory = Path(location)
    if any(directory.is_relative_to(path) for _, path in compiledirs.private_directories):
        raise error
    if getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT):
        # g++ reports a full disk as text in the user's language, so test the space by writing.
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
    warn_uncached(str(directory.parent), reason)
    return tempfile.mkdtemp(dir=compiledirs.make_private_directory())


def compute_cache_state(cache: ModuleCache) -> tuple[int, ...]:
    """Return numbers that change if a refresh of a module cache could find more modules.

    The numbers change when a process adds a module. They also change when this process imports
    modules or defines names in __main__, because it may then be able to unpickle more keys.
    """
    times = []
    with contextlib.suppress(OSError):
        times = [
            Path(path).stat().st_mtime_ns for path in (cache.dirname, *compiledirs.list_seeds())
        ]
    return (*times, len(sys.modules), len(vars(sys.modules["__main__"])))


def refresh(cache: ModuleCache) -> None:
    """Refresh a module cache if its state has changed; the caller holds the compile lock.

    An unneeded refresh is skipped, because with thousands of modules it takes longer than the
    compilation of one module.
    """
    if states.get(cache.dirname) != compute_cache_state(cache):
        cache.refresh(cleanup=False)
        states[cache.dirname] = compute_cache_state(cache)


def publish_module(cache: ModuleCache, location: str) -> None:
    """Set the permissions of a new module, and record the module cache as refreshed.

    Only the owner may write to the module. Users who may read the compiledir may read the module.
    The caller has held the compile lock since the last refresh, so no other process has added a
    module.

    Args:
        cache: the module cache that contains the module.
        location: the module's directory.
    """
    # The cache has the new module in memory, so the next refresh can be skipped.
    states[cache.dirname] = compute_cache_state(cache)
    directory = Path(location)
    # Some file systems do not let this user change permissions.
    with contextlib.suppress(OSError):
        for file in directory.iterdir():
            mode = file.stat().st_mode
            if mode & 0o022:
                file.chmod(mode & 0o755)
        directory.chmod(directory.parent.stat().st_mode & 0o755)
