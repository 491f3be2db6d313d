"""Check that pygpu calls NVIDIA's driver, or that its error names the missing driver library."""

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
        raise AssertionError("pygpu made a context without a driver") from None
else:
    assert pygpu.gpuarray.count_devices("cuda", 0) >= 0
