"""Provide theano.sandbox.cuda's C module, ``cuda_ndarray.cuda_ndarray``, without its arrays."""

import sys

from theano.sandbox.cuda.names import CudaNdarray, mem_info
from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["CudaNdarray", "__getattr__", "cuda_ndarray", "mem_info"]

cuda_ndarray = sys.modules[__name__]
sys.modules[f"{__name__}.cuda_ndarray"] = cuda_ndarray
