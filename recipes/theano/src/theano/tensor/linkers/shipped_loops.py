"""Shipped loops: a library of compiled loops, which an environment contains from the start.

The directory that the flag `cmodule.shipped` names has one library for each level of processors.
The name of a function in the library ends with a hash of the loops' code and of everything else on
which they depend, except the processor. If the library has the function of an op, Theano neither
runs g++ nor searches the module cache.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theano.gof import linker_parts, shipped
from theano.scalar import Composite
from theano.tensor.linkers.loop_modules import HEADER, Loops

if TYPE_CHECKING:
    from theano.tensor.linkers.loops import LoopsLinker

# The end of the library's name; the beginning is the level of processors.
LIBRARY = "-loops.so"


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Load the library for this processor; return None if the environment has none."""
    path = shipped.find_level_file(LIBRARY)
    return ctypes.CDLL(str(path)) if path else None


def hash_functions(linker: LoopsLinker, loops: Loops) -> str:
    """Return the hash that is appended to the names of an op's functions in the library.

    The hash depends on the functions' code, on g++'s flags and on all else that shipped.hash_module
    hashes. So the library has no function with this hash if it was compiled from other code or with
    other flags.

    Args:
        linker: the linker of the op's node, which selects the flags and libraries.
        loops: the loops of the op.
    """
    code = "\n".join(
        [*filter(None, loops.support_code), loops.description.format_functions("", "")]
    )
    return shipped.hash_module(code, linker.list_flags(), linker.libraries())


def find_function(name: str) -> int:
    """Return the address of a function in the library; return 0 if the library lacks it."""
    function = getattr(load_library(), name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0


def find_name(linker: LoopsLinker) -> str:
    """Return the end of the names of an op's functions in the library; "" if it lacks them."""
    loops = linker.make_loops()
    if loops is None or not loops.are_self_contained():
        return ""
    name = hash_functions(linker, loops)
    return name if find_function(f"loops{name}") else ""


def find_key(linker: LoopsLinker) -> Any:
    """Return the key of a linker's module in linker_parts.shipped_modules.

    Add the module to shipped_modules if needed. Return None if the loops are not shipped.
    """
    (node,) = linker.node_order
    if load_library() is None or isinstance(node.op.scalar_op, Composite):
        return None
    name = find_name(linker)
    if not name:
        return None
    description = linker.make_loops().description
    key = name, description
    if key not in linker_parts.shipped_modules:
        linker_parts.shipped_modules[key] = description.make_module(
            name, lambda function: find_function(function + name)
        )
    return key


def write_library(linkers: Iterable[LoopsLinker], level: str, directory: str) -> None:
    """Compile the self-contained loops of linkers into the library for a level of processors.

    Args:
        linkers: the linkers of the nodes whose loops are shipped. Loops that need other code are
            omitted.
        level: one of shipped.LEVELS.
        directory: the directory for the library.

    Raises:
        RuntimeError: g++ failed.
    """
    shipped.select_level(level)
    functions: dict[str, str] = {}
    macros: dict[str, None] = {}
    for linker in linkers:
        loops = linker.make_loops()
        if loops and loops.are_self_contained():
            name = hash_functions(linker, loops)
            functions[name] = loops.description.format_functions(
                'extern "C" __attribute__((visibility("default")))', name
            )
            macros.update(dict.fromkeys(loops.support_code))
            # All loops are compiled with the same arguments.
            arguments = linker.make_compile_arguments()
    arguments["src_code"] = "\n".join([f"#include {HEADER}", *macros, *functions.values()])
    shipped.compile_library(arguments, Path(directory, level + LIBRARY))
