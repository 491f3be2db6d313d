"""Report that theano.sandbox.cuda has no compiler: NVRTC compiles for the GPU today."""


def is_nvcc_available() -> bool:
    """Return False."""
    return False
