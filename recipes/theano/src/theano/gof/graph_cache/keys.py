"""What decides which graph comes out of optimization."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import theano
from theano import config
from theano.configparser import _config_var_list
from theano.gof import optdb
from theano.gof.graph_cache.describing import Describer, NotDescribable, digest
from theano.gof.graph_cache.files import Entry

if TYPE_CHECKING:
    from theano.compile.io import SymbolicInput, SymbolicOutput
    from theano.compile.mode import Mode

_logger = logging.getLogger("theano.gof.graph_cache")

# Flags that do not change what optimization does: the compiledir may move, for one.
OTHER_FLAGS = frozenset(
    [
        *("base_compiledir", "compiledir", "compiledir_format"),
        *("cmodule.trusted", "cmodule.seeds", "cmodule.max_size", "gpuarray.cache_path"),
    ]
)

# What flags are where optimization only returns a graph: with others, it is watched, or depends on
# the device and its driver.
UNWATCHED = {
    "check_stack_trace": "off",
    "compute_test_value": "off",
    "compute_test_value_opt": "off",
    "optimizer_verbose": False,
    "profile_optimizer": False,
    "device": "cpu",
    "init_gpu_device": "",
    "contexts": "",
}


@functools.cache
def surroundings() -> str:
    """Return a text that changes with the code of Theano and the versions of what it computes with.

    Its files are read once in a process.
    """
    import scipy  # noqa: PLC0415 (where it is used, as elsewhere in Theano)

    code = hashlib.blake2b()
    root = Path(theano.__file__).parent
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(set(subdirectories) - {"tests", "__pycache__"})
        for name in sorted(names):
            if name.endswith(".py"):
                path = Path(directory, name)
                code.update(str(path.relative_to(root)).encode())
                code.update(path.read_bytes())
    return f"{code.hexdigest()} {sys.version} {np.__version__} {scipy.__version__}"


def find(
    inputs: Sequence[SymbolicInput],
    outputs: Sequence[SymbolicOutput],
    mode: Mode,
    accept_inplace: bool,
) -> Entry | None:
    """Return the Entry of the graph that a function is made from, or None if none is to be kept.

    Args:
        inputs: the function's, with their updates.
        outputs: the function's.
        mode: only graphs of VM linkers and of a Mode itself are kept.
        accept_inplace: as FunctionMaker's.
    """
    if (
        not config.cache_optimizations
        or optdb.history is None
        # Others optimize in ways of their own; functions of other linkers are looked at more than
        # they are called.
        or type(mode) is not theano.compile.mode.Mode
        or not isinstance(mode.linker, theano.gof.vm.VM_Linker)
        or not isinstance(mode.provided_optimizer, optdb.Query)
    ):
        return None
    flags = {
        flag.fullname: flag.__get__(True, None)
        for flag in _config_var_list
        if flag.fullname not in OTHER_FLAGS
    }
    if any(flags[name] != value for name, value in UNWATCHED.items()):
        return None
    updates = [each.update for each in inputs if each.update]
    describer = Describer()
    try:
        description = [
            surroundings(),
            optdb.history,
            sorted(flags.items()),
            accept_inplace,
            describer.describe(mode.provided_optimizer),
            describer.describe_graph(
                [each.variable for each in inputs],
                [each.variable for each in outputs] + updates,
            ),
            [(each.mutable, each.borrow, bool(each.update), each.shared) for each in inputs],
            [each.borrow for each in outputs],
        ]
    except (NotDescribable, RecursionError) as error:
        _logger.debug("a graph is not kept for %s", error)
        return None
    return Entry(digest(repr(description)), describer)
