"""Cache keys of optimized graphs: hashes of everything that determines the result."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import theano
from theano import config
from theano.configparser import _config_var_list
from theano.gof import optdb, optdb_history
from theano.gof.atomic_files import replace_file
from theano.gof.graph_cache.describing import Describer, NotDescribable, digest
from theano.gof.graph_cache.files import Entry
from theano.misc import trust

if TYPE_CHECKING:
    from theano.compile.io import SymbolicInput, SymbolicOutput
    from theano.compile.mode import Mode
    from theano.gof.fg import FunctionGraph

_logger = logging.getLogger("theano.gof.graph_cache")

# Flags that do not affect optimization, so the key omits them. For example, a compiledir can move.
UNRELATED_FLAGS = frozenset(
    [
        *("base_compiledir", "compiledir", "compiledir_format"),
        *("cmodule.trusted", "cmodule.seeds", "cmodule.max_size", "gpuarray.cache_path"),
    ]
)

# Graphs are cached only if the flags have these values. With other values, optimization has side
# effects, or depends on a device and its driver.
REQUIRED_FLAGS = {
    "check_stack_trace": "off",
    "compute_test_value": "off",
    "compute_test_value_opt": "off",
    "optimizer_verbose": False,
    "profile_optimizer": False,
    "device": "cpu",
    "init_gpu_device": "",
    "contexts": "",
}


# The file in the compiledir that records the hash of Theano's code.
CODE_HASH = "code_hash"


@functools.cache
def describe_versions() -> str:
    """Describe the code of Theano by its hash, and Python, NumPy and SciPy by their versions.

    Raises:
        OSError: a file cannot be read.
    """
    # SciPy's version is in a file. Do not import SciPy, because the import takes long.
    spec = importlib.util.find_spec("scipy")
    scipy_version = ""
    if spec and spec.origin:
        scipy_version = Path(spec.origin).with_name("version.py").read_text()
    return f"{find_code_hash()} {sys.version} {np.__version__} {scipy_version}"


def find_code_hash() -> str:
    """Return the hash of Theano's code: of its Python files without tests.

    Read the code only if a file differs from the record in the compiledir.

    Raises:
        OSError: a file cannot be read.
    """
    root = Path(theano.__file__).parent
    sources: list[Path] = []
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(set(subdirectories) - {"tests", "__pycache__"})
        sources += [Path(directory, name) for name in sorted(names) if name.endswith(".py")]
    # All files of the package have the same modification time. After a reinstallation, the times of
    # change differ. A read-only image may have no times of change, but the package's digest.
    digest_file = root / "package_digest"
    package_digest = digest_file.read_text() if digest_file.exists() else ""
    identity = digest("\n".join([package_digest, *map(describe_file, sources)]))
    record = Path(config.compiledir, CODE_HASH)
    with contextlib.suppress(OSError, ValueError):
        recorded_identity, code_hash = trust.read_trusted(record).decode().split()
        if recorded_identity == identity:
            return code_hash
    code = hashlib.blake2b()
    for source in sources:
        code.update(str(source.relative_to(root)).encode())
        code.update(source.read_bytes())
    with contextlib.suppress(OSError):
        replace_file(record, f"{identity} {code.hexdigest()}".encode())
    return code.hexdigest()


def describe_file(path: Path) -> str:
    """Return the path of a file with its size in bytes, inode and times in nanoseconds."""
    status = path.stat()
    return f"{path} {status.st_size} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"


def load(
    inputs: Sequence[SymbolicInput],
    outputs: Sequence[SymbolicOutput],
    mode: Mode,
    accept_inplace: bool,
    profile: Any,
) -> tuple[Entry | None, FunctionGraph | None, float]:
    """Look up the optimized graph of a function in the cache.

    Args:
        inputs: as for `make_entry`.
        outputs: as for `make_entry`.
        mode: as for `make_entry`.
        accept_inplace: as for `make_entry`.
        profile: the function's profile, or None. If the graph is cached, the time of the lookup is
            added to the profile.

    Returns:
        The cache entry, or None if the graph must not be cached; the optimized graph, or None if it
        is not cached; and the time of the lookup in seconds.
    """
    start = time.time()
    entry = make_entry(inputs, outputs, mode, accept_inplace)
    fgraph = entry.load([symbolic.variable for symbolic in inputs]) if entry else None
    seconds = time.time() - start
    if fgraph is not None:
        fgraph.profile = profile
        theano.compile.profiling.total_graph_opt_time += seconds
        if profile:
            profile.optimizer_time += seconds
    return entry, fgraph, seconds


def make_entry(
    inputs: Sequence[SymbolicInput],
    outputs: Sequence[SymbolicOutput],
    mode: Mode,
    accept_inplace: bool,
) -> Entry | None:
    """Return the cache entry of a function's graph, or None if the graph must not be cached.

    Args:
        inputs: the function's inputs, with their updates.
        outputs: the function's outputs.
        mode: the function's mode. Graphs of subclasses of Mode and of linkers other than VM_Linker
            are not cached.
        accept_inplace: as for FunctionMaker.
    """
    if (
        not config.cache_optimizations
        or optdb_history.history is None
        # A subclass of Mode can optimize differently. Other linkers are for inspection.
        or type(mode) is not theano.compile.mode.Mode
        or not isinstance(mode.linker, theano.gof.vm.VM_Linker)
        or not isinstance(mode.provided_optimizer, optdb.Query)
    ):
        return None
    flags = {
        flag.fullname: flag.__get__(True, None)
        for flag in _config_var_list
        if flag.fullname not in UNRELATED_FLAGS
    }
    if any(flags[name] != value for name, value in REQUIRED_FLAGS.items()):
        return None
    updates = [symbolic.update for symbolic in inputs if symbolic.update]
    describer = Describer()
    try:
        description = [
            describe_versions(),
            optdb_history.history,
            sorted(flags.items()),
            accept_inplace,
            describer.describe(mode.provided_optimizer),
            describer.describe_graph(
                [symbolic.variable for symbolic in inputs],
                [symbolic.variable for symbolic in outputs] + updates,
            ),
            [(x.mutable, x.borrow, bool(x.update), x.shared) for x in inputs],
            [symbolic.borrow for symbolic in outputs],
        ]
    except (NotDescribable, OSError, RecursionError) as error:
        _logger.debug("a graph is not cached because of %s", error)
        return None
    return Entry(digest(repr(description)), describer)
