"""g++'s flags for modules that use arrays on a device: -O1.

These modules check shapes and launch kernels. With -O1, g++ takes 0.7 of its time with -O3, and the
host takes the same time for a training step of 3 LSTM layers. The user's flags (gcc.cxxflags) come
later and override -O1.
"""

from __future__ import annotations

from theano.gpuarray.type import GpuArrayType


def list_flags(_type: GpuArrayType) -> list[str]:
    """Return the flags for a module with a variable of this type."""
    return ["-O1"]


GpuArrayType.c_compile_args = list_flags
