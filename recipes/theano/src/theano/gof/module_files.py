"""Files of compiled modules: checks before loading, checksums, seeds, and space for new modules."""

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

# The size of a checksum, and the free space that a new module needs, in bytes.
CHECKSUM_SIZE = 20
ROOM = 2**23
# In seconds.
A_DAY = 24 * 60 * 60

# The paths of key files that could not be written and so differ from the keys in memory.
unsaved: set[str] = set()
# Maps the path of a cache's directory to its state after the last complete refresh.
states: dict[str, tuple[int, ...]] = {}


class Damaged(EOFError):
    """Raised if a file's content differs from the written content."""


def make_checksum(content: bytes) -> bytes:
    """Return the checksum of a file's content, of CHECKSUM_SIZE bytes."""
    return hashlib.blake2b(content, digest_size=CHECKSUM_SIZE).digest()


def list_module_files(directory: str) -> list[str] | None:
    """List the files in a module's directory; return None if the directory must not be loaded.

    Libraries that cannot be read are left out.
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
    """Write a KeyData to its file, with the checksums of the key and of the module.

    Keys of a seed are not written. An OSError is logged; all other exceptions of pickle are raised.
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
        # pickle, and so an older Theano, does not read the checksum at the end.
        replace_file(key_data.key_pkl, pickled + make_checksum(pickled))
    except OSError as error:
        unsaved.add(key_data.key_pkl)
        _logger.debug("%s is not written: %s", key_data.key_pkl, error)
    else:
        unsaved.discard(key_data.key_pkl)


def read_key(path: str) -> Any:
    """Read a KeyData that save_key, or an older Theano, wrote.

    Raises:
        Damaged: the file is incomplete or changed.
        OSError: the file cannot be read, or another user could have written it.
        Exception: pickle failed, for example because the keys' classes are not imported.
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
    """Return whether a file belongs to a seed cache, which is read-only."""
    return any(Path(path).is_relative_to(seed) for seed in compiledirs.seeds())


def add_seeds(cache: ModuleCache) -> None:
    """Add the modules of the seed caches to a cache; earlier seeds take precedence."""
    # Import it here, because cmodule imports this module.
    from theano.gof import cmodule  # noqa: PLC0415

    for key_pkl in (
        str(path) for seed in compiledirs.seeds() for path in seed.glob("tmp*/key.pkl")
    ):
        if key_pkl in cache.loaded_key_pkl:
            continue
        try:
            directory = str(Path(key_pkl).parent)
            entry = cmodule.module_name_from_dir(
                directory, files=list_module_files(directory) or ()
            )
            key_data = read_key(key_pkl)
            same_entry = cmodule.is_same_entry(entry, key_data.get_entry())
        except Exception as error:
            # The keys' classes may be imported later; ModuleCache.refresh tolerates this too.
            _logger.debug("%s is ignored: %r", key_pkl, error)
            continue
        if same_entry and key_data.module_hash not in cache.module_hash_to_key_data:
            key_data.entry, key_data.key_pkl = entry, key_pkl
            cache.module_hash_to_key_data[key_data.module_hash] = key_data
            cache.key_data_of[entry] = key_data
            cache.loaded_key_pkl.add(key_pkl)
            for key in key_data.keys:
                if cache.entry_from_key.setdefault(key, entry) == entry:
                    cache.similar_keys.setdefault(cmodule.get_safe_part(key), []).append(key)


def check_library(entry: str, key_data: KeyData | None) -> None:
    """Check a module's library before it is loaded, and record the access.

    Args:
        entry: the path of the library.
        key_data: the module's KeyData with the checksum, if the cache has it.

    Raises:
        Damaged: the checksum differs.
        OSError: the library cannot be read, or another user could have written it.
    """
    content = trust.read(entry)
    checksum = getattr(key_data, "checksum", None)
    # An older Theano wrote no checksum.
    if checksum not in (None, make_checksum(content)):
        raise Damaged(entry)
    # Modules are removed by their time of access, which some mounts do not update.
    with contextlib.suppress(OSError):
        status = Path(entry).stat()
        if time.time() - status.st_atime > A_DAY:
            os.utime(entry, (time.time(), status.st_mtime))


def import_library(name: str, path: str) -> ModuleType:
    """Load a module from a library, without a search of the library's directory.

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
    """Remove an unusable module from a cache in memory, and from the disk if it is damaged.

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
    # Another process may be able to load a library whose checksum is right.
    unverified = getattr(key_data, "checksum", None) is None and isinstance(error, ImportError)
    if (unverified or isinstance(error, Damaged)) and not is_seed(entry):
        shutil.rmtree(Path(entry).parent, ignore_errors=True)


def warn_uncached(directory: str, error: Exception) -> None:
    """Log that new modules are not cached: the first time as a warning, then at level debug."""
    trust.warn_first(
        _logger,
        "%s takes no more modules (%s): this process compiles new modules for itself and does not "
        "cache them",
        directory,
        error,
    )


def new_directory(compiledir: str) -> str:
    """Make a directory for a module, in a private directory if the compiledir has no space."""
    try:
        room = os.statvfs(compiledir)
        if room.f_bavail * room.f_frsize < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return tempfile.mkdtemp(dir=compiledir)
    except OSError as error:
        warn_uncached(compiledir, error)
        return tempfile.mkdtemp(dir=compiledirs.private())


def replace_full_directory(location: str, error: Exception) -> str:
    """Make a private directory instead of a module's directory that has no space.

    Args:
        location: the module's directory; it is removed.
        error: the exception that compiling the module raised.

    Raises:
        Exception: `error`, if the directory has space.
    """
    directory = Path(location)
    if any(directory.is_relative_to(path) for _, path in compiledirs.private_directories):
        raise error
    if getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT):
        # g++ reports a full disk as text in the user's language, so try to write.
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
    return tempfile.mkdtemp(dir=compiledirs.private())


def cache_state(cache: ModuleCache) -> tuple[int, ...]:
    """Return numbers that change if a refresh of a cache could find more modules.

    They change when a process adds a module, and when this process imports or defines classes,
    because more keys may be readable then.
    """
    times = []
    with contextlib.suppress(OSError):
        times = [Path(path).stat().st_mtime_ns for path in (cache.dirname, *compiledirs.seeds())]
    return (*times, len(sys.modules), len(vars(sys.modules["__main__"])))


def refresh(cache: ModuleCache) -> None:
    """Refresh a cache if its state has changed; the caller holds the lock on the cache.

    With thousands of modules, a refresh takes longer than the compilation of one module.
    """
    if states.get(cache.dirname) != cache_state(cache):
        cache.refresh(cleanup=False)
        states[cache.dirname] = cache_state(cache)


def publish(cache: ModuleCache, location: str) -> None:
    """Set the permissions of a new module: the cache's readers may read, only the owner may write.

    The caller has held the lock since the last refresh, so no other process has added a module.

    Args:
        cache: the cache that contains the module.
        location: the module's directory.
    """
    states[cache.dirname] = cache_state(cache)
    directory = Path(location)
    # This user may not change some permissions; they stay unchanged.
    with contextlib.suppress(OSError):
        for file in directory.iterdir():
            mode = file.stat().st_mode
            if mode & 0o022:
                file.chmod(mode & 0o755)
        directory.chmod(directory.parent.stat().st_mode & 0o755)
