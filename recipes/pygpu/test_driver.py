"""pygpu reaches the driver, or says that there is none; no other library is missing."""

import ctypes

import pygpu

try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    try:
        pygpu.init("cuda")
    except pygpu.gpuarray.GpuArrayException as error:
        assert "libcuda.so.1" in str(error), error
    else:
        raise AssertionError("a context without a driver") from None
else:
    assert pygpu.gpuarray.count_devices("cuda", 0) >= 0
