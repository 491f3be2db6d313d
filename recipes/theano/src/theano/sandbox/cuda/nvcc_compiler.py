"""Placeholder for theano.sandbox.cuda.nvcc_compiler: theano.gpuarray compiles with NVRTC."""


def is_nvcc_available() -> bool:
    """Return False: Theano does not use nvcc."""
    return False
