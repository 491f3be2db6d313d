"""
Why a CUDA device cannot be used, in words.

pygpu's errors name the call that failed. The driver can tell the cause
beforehand, and is asked through ctypes: nothing is compiled.
"""
from __future__ import absolute_import, print_function, division
import ctypes
import os
import re
import sys

# NVRTC 13 compiles for Turing and newer. libgpuarray 0.7.6 cuts the names of
# architectures to two digits, so that Blackwell's compute_100 is none.
OLDEST, BEYOND = (7, 5), (10, 0)

# CUdevice_attribute
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76

# The name by which libgpuarray opens it.
NVRTC = os.path.join(sys.prefix, 'lib', 'gpuarray', 'libnvrtc.so')


class DeviceError(RuntimeError):
    """A device cannot be used, for a reason that is known."""


def check(device, nvrtc=NVRTC):
    """
    Raise DeviceError if the device cannot be used.

    Parameters
    ----------
    device : string
        As in the flag `device`: "cuda", "cudaN", or "cuda" and a PCI bus ID.
    nvrtc : string
        Path of the compiler's library, whose version of CUDA the driver has
        to support.

    """
    try:
        cuda = ctypes.CDLL('libcuda.so.1')
    except OSError as e:
        raise DeviceError(
            "there is no NVIDIA driver (%s). Install one, or start the "
            "container with the host's: docker run --gpus=all" % e)
    err = cuda.cuInit(0)
    if err:
        raise DeviceError(
            "the NVIDIA driver does not start: %s. nvidia-smi should list the "
            "device; CUDA_VISIBLE_DEVICES may hide it" % _describe(cuda, err))
    supported, needed = _driver_version(cuda), _nvrtc_version(nvrtc)
    if supported < needed:
        raise DeviceError(
            "the NVIDIA driver supports CUDA %d.%d, and the libraries are of "
            "CUDA %d.%d. Update the driver" % (supported + needed))
    _check_capability(cuda, device)


def _check_capability(cuda, device):
    number = re.match(r'cuda(\d*)$', device)
    if number is None:
        return
    ordinal = int(number.group(1) or 0)
    handle = ctypes.c_int()
    if cuda.cuDeviceGet(ctypes.byref(handle), ordinal):
        count = ctypes.c_int()
        cuda.cuDeviceGetCount(ctypes.byref(count))
        raise DeviceError(
            "there is no device %d: the NVIDIA driver has %d, counted from 0"
            % (ordinal, count.value))
    capability = tuple(
        _attribute(cuda, handle, attribute)
        for attribute in (COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR))
    if capability < OLDEST:
        raise DeviceError(
            "device %d has compute capability %d.%d, and this CUDA compiles for "
            "%d.%d and newer. Use a newer device" % ((ordinal,) + capability + OLDEST))
    if capability >= BEYOND:
        raise DeviceError(
            "device %d has compute capability %d.%d, and libgpuarray knows none "
            "from %d.%d on. Use a device of the Hopper generation or older"
            % ((ordinal,) + capability + BEYOND))


def _attribute(cuda, handle, attribute):
    value = ctypes.c_int()
    cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
    return value.value


def _describe(cuda, err):
    text = ctypes.c_char_p()
    cuda.cuGetErrorString(err, ctypes.byref(text))
    return text.value.decode() if text.value else 'error %d' % err


def _driver_version(cuda):
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000, version.value % 1000 // 10


def _nvrtc_version(path):
    try:
        library = ctypes.CDLL(path)
    except OSError as e:
        raise DeviceError("CUDA's compiler NVRTC cannot be loaded: %s" % e)
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value
