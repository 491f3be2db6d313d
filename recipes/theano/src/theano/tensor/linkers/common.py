"""Loops of common operations, which come compiled with an environment.

The directory that the flag `cmodule.shipped` names has a library of them for each level of
processors. In it, a name stands for the code of loops, and for all that they depend on but the
processor: g++ need not be asked, nor the cache of modules.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theano.gof import cc, shipped
from theano.scalar import Composite
from theano.tensor.linkers.modules import HEADER

if TYPE_CHECKING:
    from theano.tensor.linkers.loops import LoopsLinker
    from theano.tensor.linkers.tables import Table

LIBRARY = "-loops.so"


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the library for this processor, if one was shipped."""
    path = shipped.at_level(LIBRARY)
    return ctypes.CDLL(str(path)) if path else None


def name_of(linker: LoopsLinker, table: Table) -> str:
    """Return the name of the functions of a table, of which a linker has the flags for g++."""
    return shipped.name_of(table.functions("", ""), linker.flags(), linker.libraries())


def key(linker: LoopsLinker) -> Any:
    """Return what stands for the module of a linker that came with the environment, or None."""
    (node,) = linker.node_order
    loaded = library()
    if loaded is None or isinstance(node.op.scalar_op, Composite):
        return None
    loops = linker.loops()
    if loops is None or not loops.need_no_other():
        return None
    name = name_of(linker, loops.table)
    # What is in the library was compiled with the header alone.
    if not hasattr(loaded, f"loops{name}"):
        return None

    def address(function: str) -> int:
        return ctypes.cast(getattr(loaded, function + name), ctypes.c_void_p).value or 0

    found = name, loops.table
    if found not in cc.shipped_modules:
        cc.shipped_modules[found] = loops.table.module(name, address)
    return found


def write(linkers: Iterable[LoopsLinker], level: str, directory: str) -> None:
    """Compile the loops of linkers, those that need nothing else, for a level of processors.

    Args:
        level: one of shipped.LEVELS.
        directory: where the library goes.

    Raises:
        RuntimeError: g++ failed.
    """
    shipped.compile_for(level)
    functions: dict[str, str] = {}
    for linker in linkers:
        loops = linker.loops()
        if loops and loops.need_no_other() and loops.includes() == [HEADER]:
            name = name_of(linker, loops.table)
            functions[name] = loops.table.functions(
                'extern "C" __attribute__((visibility("default")))', name
            )
            arguments = linker.compile_arguments()
    arguments["src_code"] = "\n".join([f"#include {HEADER}", *functions.values()])
    shipped.compile_library(arguments, Path(directory, level + LIBRARY))
