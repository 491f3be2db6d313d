"""Definitions of the flags that this distribution adds to Theano 1.0.5.

`theano.configdefaults` imports this module before it warns of unknown flags.
"""

from __future__ import annotations

from typing import Any

from theano.configparser import AddConfigVar, BoolParam, IntParam, StrParam


def add_flag(name: str, text: str, parameter: Any) -> None:
    """Add a flag that does not change compiled modules, so their cache keys do not contain it.

    Args:
        name: the name of the flag.
        text: the help text.
        parameter: the type and the default value, such as BoolParam(False).
    """
    AddConfigVar(name, text, parameter, in_c_key=False)


def is_natural(number: int) -> bool:
    """Return whether a number is not negative."""
    return number >= 0


add_flag(
    "blas.kernels",
    "On processors with AVX2, compute products of vectors, and matrix products of up to 2**27"
    " multiplications, by Theano's kernels, which are faster than a BLAS for such products. False:"
    " the BLAS computes them.",
    BoolParam(True),
)
add_flag(
    "cmodule.background",
    "Compile fused loops in the background, at low priority. Until they are compiled, compute the"
    " same results by shipped loops.",
    BoolParam(True),
)
add_flag(
    "cmodule.jobs",
    "The number of parallel runs of g++. 0: the number of CPUs that this process may use.",
    IntParam(0, is_natural),
)
add_flag(
    "cmodule.shipped",
    "A directory of modules that the environment contains. Empty: all modules are compiled on this"
    " machine.",
    StrParam(""),
)
add_flag(
    "cmodule.trusted",
    "Users and groups, in addition to you and root, whose modules and graphs are loaded: names or"
    " IDs, separated by colons, with an @ before a group.",
    StrParam(""),
)
add_flag(
    "cmodule.seeds",
    "Other base_compiledirs, separated by colons: their modules and graphs are loaded, and nothing"
    " is written there.",
    StrParam("", allow_override=False),
)
add_flag(
    "cmodule.max_size",
    "In MB. If the compiledir is larger, its least recently used files are removed at the end of a"
    " process. 0: no limit.",
    IntParam(0, is_natural),
)
add_flag(
    "dnn.tf32",
    "On devices with TF32, let cuDNN round float32 inputs of convolutions and of recurrent"
    " networks to TF32: faster, but with 10 bits of mantissa, as in float16.",
    BoolParam(False),
)
add_flag(
    "elemwise.threads",
    "The number of threads that share the loops of a large Elemwise, CAReduce or product. 0: the"
    " least of OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and MKL_NUM_THREADS; if none is set, the"
    " number of CPUs that this process may use.",
    IntParam(0, is_natural),
)
add_flag(
    "gpuarray.graph_memory",
    "MiB of device memory that CUDA graphs may reserve. -1: a quarter of the device's memory. 0:"
    " functions use no CUDA graphs.",
    IntParam(-1),
)
add_flag(
    "malloc.keep",
    "MiB of freed memory that the process keeps for the next function call (with glibc). 0: glibc"
    " decides when freed memory returns to the system. Environment variables that tune malloc"
    " (MALLOC_*, GLIBC_TUNABLES) take precedence.",
    IntParam(1024),
)
add_flag(
    "numpy_newaxis",
    "Keep broadcastable dimensions after the last index of an expression with numpy.newaxis, as"
    " NumPy does. The default, False, drops them, as Theano 1.0.5 does.",
    BoolParam(False),
)
add_flag(
    "scan.replay",
    "Record the work of a scan's second step, and replay it in later steps, with the same results"
    " and lower overhead.",
    BoolParam(True),
)
