"""Translation of C code with NumPy's names of types to libgpuarray's names, for kernels."""

from __future__ import annotations

import re
from typing import Any

# Maps NumPy's name of a C type to libgpuarray's name.
NAMES = {
    "npy_bool": "ga_bool",
    "npy_int8": "ga_byte",
    "npy_int16": "ga_short",
    "npy_int32": "ga_int",
    "npy_int64": "ga_long",
    "npy_uint8": "ga_ubyte",
    "npy_uint16": "ga_ushort",
    "npy_uint32": "ga_uint",
    "npy_uint64": "ga_ulong",
    "npy_float16": "ga_half",
    "npy_float32": "ga_float",
    "npy_float64": "ga_double",
}


def in_kernels(code: str) -> str:
    """Replace NumPy's type names in C code by libgpuarray's type names: npy_int32 by ga_int."""
    return re.sub(r"\bnpy_\w+", lambda match: NAMES.get(match[0], match[0]), code)


def scalar_versions(op: Any) -> list[tuple[Any, ...]]:
    """Return the versions of the C code of a reduction's scalar ops; () for code without a version.

    Args:
        op: a GpuCAReduceCuda. Its kernels contain the C code of its scalar ops.
    """
    scalar_ops = filter(None, (op.scalar_op, op.pre_scalar_op))
    return [scalar_op.c_code_cache_version() for scalar_op in scalar_ops]
