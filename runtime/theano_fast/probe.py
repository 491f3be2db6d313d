"""Probe Theano's flags, libraries, compiler and cache: ``-m theano_fast.probe FILE`` writes JSON.

Importing this module loads the stack's libraries. If they are broken, the import fails or crashes.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import theano
from theano import configparser

from theano_fast import environment


def probe() -> dict[str, Any]:
    """Return the values of all flags, and the state of libraries, compiler, cache and device."""
    return {
        **environment.gather_facts(),
        "cache": probe_cache(Path(theano.config.compiledir)),
        "compiler": probe_compiler(theano.config.cxx),
        "device": probe_device(),
        "flags": {flag.fullname: _format_value(flag) for flag in configparser._config_var_list},
    }


def _format_value(flag: Any) -> str:
    try:
        return str(flag.__get__(True, None))
    # __get__ may compute a default value, which may raise any exception. Report the exception.
    except Exception as error:
        return f"({type(error).__name__}: {error})"


def probe_compiler(cxx: str) -> dict[str, Any]:
    """Return the compiler's version, and the seconds and error of compiling an empty function.

    If the compiler does not exist, return only ``cxx``.
    """
    if not cxx or shutil.which(cxx) is None:
        return {"cxx": cxx}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "empty.cpp")
        source.write_text("int nothing() { return 0; }\n")
        started = time.perf_counter()
        command = [cxx, "-shared", "-fPIC", "-o", f"{folder}/empty.so", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
    banner = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=False)
    return {
        "cxx": cxx,
        "version": "".join(banner.stdout.splitlines()[:1]),
        "seconds": seconds,
        "error": "".join(done.stderr.strip().splitlines()[-1:]) if done.returncode else "",
    }


def probe_cache(folder: Path) -> dict[str, Any]:
    """Return the compiledir's path, files, file system and lock holder; sizes are in bytes."""
    sizes = []
    for directory, _, names in os.walk(folder):
        for name in names:
            # A program that compiles may remove the file.
            with contextlib.suppress(OSError):
                sizes.append(Path(directory, name).stat().st_size)
    usage = shutil.disk_usage(folder)
    return {
        "path": str(folder),
        "files": len(sizes),
        "bytes": sum(sizes),
        "free": usage.free,
        "writable": os.access(folder, os.W_OK),
        "file_system": find_file_system(folder),
        "locked_by": find_lock_holder(folder / "lock_dir" / "lock"),
    }


def find_lock_holder(lock: Path) -> str:
    """Return the text of the lock's file if a process holds the compile lock, otherwise ""."""
    try:
        with lock.open("r+", errors="replace") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "another process"
    except OSError:
        pass
    return ""


def find_file_system(folder: Path) -> str:
    """Return the type of a folder's file system, such as ext4 or nfs4."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    candidates = [
        (len(words[1]), words[2]) for words in mounts if folder.is_relative_to(Path(words[1]))
    ]
    return max(candidates, default=(0, "unknown"))[1]


def probe_device() -> dict[str, Any]:
    """Return whether Theano's GPU back end is active, and its contexts."""
    from theano import gpuarray  # noqa: PLC0415 - the import warns if pygpu is missing

    contexts = gpuarray.type._context_reg.items()
    return {
        "active": bool(gpuarray.pygpu_activated),
        "contexts": {str(name): str(context.devname) for name, context in contexts},
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(probe()))
