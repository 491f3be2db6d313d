"""Flags that Theano 1.0.5 does not have.

`theano.configdefaults` imports this module, before it warns of unknown flags.
"""

from __future__ import annotations

from typing import Any

from theano.configparser import AddConfigVar, BoolParam, IntParam, StrParam


def add(name: str, text: str, parameter: Any) -> None:
    """Add a flag that does not change compiled modules, and so is not in their keys."""
    AddConfigVar(name, text, parameter, in_c_key=False)


def is_natural(number: int) -> bool:
    """Return whether a number is not negative."""
    return number >= 0


add(
    "cmodule.jobs",
    "The number of parallel runs of g++. 0: one for each CPU that this process may use.",
    IntParam(0, is_natural),
)
add(
    "cmodule.shipped",
    "A directory of modules that the environment contains. Empty: all modules are compiled on this"
    " machine.",
    StrParam(""),
)
add(
    "cmodule.trusted",
    "Users and groups whose modules and graphs are loaded, besides your own and root's: names or"
    " numbers of users, and of groups with an @ before them, separated by colons.",
    StrParam(""),
)
add(
    "cmodule.seeds",
    "Other base_compiledirs, separated by colons: their modules and graphs are loaded, and nothing"
    " is written there.",
    StrParam("", allow_override=False),
)
add(
    "cmodule.max_size",
    "In MB. If the compiledir is larger, its least recently used files are removed at the end of a"
    " process. 0: no limit.",
    IntParam(0, is_natural),
)
add(
    "dnn.tf32",
    "Let cuDNN round float32 inputs of convolutions and of recurrent networks to TF32, which has"
    " the 10 bits of mantissa of float16, on devices that have it: faster, and less exact.",
    BoolParam(False),
)
add(
    "malloc.keep",
    "MB of freed memory that the process keeps for the next function call (with glibc). 0: freed"
    " memory returns to the system as glibc decides. Environment variables that tune malloc"
    " (MALLOC_*, GLIBC_TUNABLES) take precedence.",
    IntParam(1024),
)
add(
    "numpy_newaxis",
    "Keep broadcastable dimensions after the last index of an expression with numpy.newaxis, as"
    " NumPy does. The default, False, drops them, as Theano 1.0.5 does.",
    BoolParam(False),
)
