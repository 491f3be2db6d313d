"""Placeholder for the C module theano.sandbox.cuda.cuda_ndarray.cuda_ndarray.

Creating a CudaNdarray and calling mem_info raise an error.
"""

import sys

from theano.sandbox.cuda.names import CudaNdarray, mem_info
from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["CudaNdarray", "__getattr__", "cuda_ndarray", "mem_info"]

# This file serves as the package cuda_ndarray and as the C module of the same name in it.
cuda_ndarray = sys.modules[__name__]
sys.modules[f"{__name__}.cuda_ndarray"] = cuda_ndarray
