"""Check of a CUDA device before its first use, by queries of NVIDIA's driver through ctypes.

pygpu's errors name only the call that failed; these errors name the cause. ctypes needs no
compiler. The name of the directory of compiled kernels depends on the results of the queries.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

from theano.misc import trust

# The oldest compute capability (Turing) for which NVRTC 13 compiles.
OLDEST = (7, 5)

# Constants of the enumeration CUdevice_attribute of cuda.h.
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76

# The path from which libgpuarray loads NVRTC, the compiler of CUDA kernels.
NVRTC = str(Path(sys.base_prefix, "lib", "gpuarray", "libnvrtc.so"))
# The library that NVRTC links, and the file that contains the version of the loaded driver.
NVRTC_LIBRARY = Path(sys.base_prefix, "lib", "libnvrtc.so.13")
DRIVER_VERSION = Path("/proc/driver/nvidia/version")


class DeviceError(RuntimeError):
    """Raised for an unusable device; the message has the reason and the next step."""


def may_keep(cache_path: str) -> bool:
    """Create a directory for cached kernels if needed; return whether its files may be loaded."""
    path = Path(cache_path)
    try:
        path.mkdir(0o755, parents=True, exist_ok=True)
        return trust.may_load(path, path.stat())
    except OSError:
        return False


def choose_kernel_cache(cache_path: str, device: str) -> dict[str, str]:
    """Return pygpu's argument for its disk cache of kernels; empty if the cache may not be used.

    pygpu's key of a kernel has the kernel's source, the driver's version of CUDA and the compute
    capability for which NVRTC compiles. The kernel also depends on the versions of NVRTC and of the
    driver, and on the device: Hopper and Blackwell have equal keys. So the directory has a
    subdirectory for each result of _describe_target.

    Args:
        cache_path: the value of the flag `gpuarray.cache_path`.
        device: the value of the flag `device`.
    """
    if not cache_path or not may_keep(cache_path):
        return {}
    if device.startswith("cuda"):
        cache_path = str(Path(cache_path, _describe_target(device)))
        if not may_keep(cache_path):
            return {}
    return {"kernel_cache_path": cache_path}


def _describe_target(device: str) -> str:
    """Return a name for a device's compute capability, NVRTC's version and the driver's version.

    Together with a kernel's source, they determine its machine code.

    Args:
        device: as for check_device. Without a number, the name contains the capabilities of all
            devices.
    """
    cuda = ctypes.CDLL("libcuda.so.1")
    number = _parse_number(device)
    numbers = range(_count_devices(cuda)) if number is None else [number]
    capabilities = {_query_capability(cuda, number) for number in numbers}
    parts = [f"sm_{major}{minor}" for major, minor in sorted(filter(None, capabilities))]
    if NVRTC_LIBRARY.exists():
        # The size distinguishes builds of one version of CUDA.
        parts.append(f"nvrtc_{NVRTC_LIBRARY.stat().st_size}")
    if DRIVER_VERSION.exists():
        version = re.search(r"\b\d+\.[\d.]*\d\b", DRIVER_VERSION.read_text())
        parts.append(f"driver_{version[0]}" if version else "")
    return "-".join(parts)


def query_capabilities() -> set[str]:
    """Return the compute capabilities of all devices, such as {"90"}, after the driver's start."""
    cuda = ctypes.CDLL("libcuda.so.1")
    capabilities = (_query_capability(cuda, number) for number in range(_count_devices(cuda)))
    return {f"{major}{minor}" for major, minor in filter(None, capabilities)}


def check_device(device: str, nvrtc: str = NVRTC) -> None:
    """Check that a device can be used.

    Args:
        device: the value of the flag `device`: "cuda", "cudaN", or "cuda" and a PCI bus ID.
        nvrtc: the path of NVRTC. The driver must support its version of CUDA.

    Raises:
        DeviceError: the device cannot be used.
    """
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError(
            f"there is no NVIDIA driver ({error}). Install one, or start the "
            "container with the host's: docker run --gpus=all"
        ) from error
    status = cuda.cuInit(0)
    if status:
        raise DeviceError(
            f"the NVIDIA driver does not start: {_describe_status(cuda, status)}. nvidia-smi "
            "should list the device; CUDA_VISIBLE_DEVICES may hide it"
        )
    supported, needed = _query_driver_version(cuda), _query_nvrtc_version(nvrtc)
    if supported < needed:
        raise DeviceError(
            f"the NVIDIA driver supports CUDA {_format_version(supported)}, and the libraries are "
            f"of CUDA {_format_version(needed)}. Update the driver"
        )
    _check_capability(cuda, device)


def _check_capability(cuda: ctypes.CDLL, device: str) -> None:
    """Check that a device exists and has at least the capability OLDEST.

    Do nothing for a PCI bus ID; check device 0 for "cuda".

    Raises:
        DeviceError: the device does not exist, or is too old.
    """
    number = 0 if device == "cuda" else _parse_number(device)
    if number is None:
        return
    capability = _query_capability(cuda, number)
    if capability is None:
        raise DeviceError(
            f"there is no device {number}: the NVIDIA driver has {_count_devices(cuda)}, counted "
            "from 0"
        )
    if capability < OLDEST:
        raise DeviceError(
            f"device {number} has compute capability {_format_version(capability)}, and this CUDA"
            f" compiles for {_format_version(OLDEST)} and newer. Use a newer device"
        )


def _parse_number(device: str) -> int | None:
    """Return the number N of the device "cudaN"; return None for other values of the flag."""
    match = re.fullmatch(r"cuda(\d+)", device)
    return int(match[1]) if match else None


def _count_devices(cuda: ctypes.CDLL) -> int:
    """Return the number of devices."""
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    return count.value


def _query_capability(cuda: ctypes.CDLL, number: int) -> tuple[int, int] | None:
    """Return the compute capability of a device, or None if there is no device with the number."""
    handle = ctypes.c_int()
    if cuda.cuDeviceGet(ctypes.byref(handle), number):
        return None
    return (
        _query_attribute(cuda, handle, COMPUTE_CAPABILITY_MAJOR),
        _query_attribute(cuda, handle, COMPUTE_CAPABILITY_MINOR),
    )


def _query_attribute(cuda: ctypes.CDLL, handle: ctypes.c_int, attribute: int) -> int:
    """Return the value of a CUdevice_attribute of a device."""
    value = ctypes.c_int()
    cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
    return value.value


def _describe_status(cuda: ctypes.CDLL, status: int) -> str:
    """Return the driver's description of an error."""
    text = ctypes.c_char_p()
    cuda.cuGetErrorString(status, ctypes.byref(text))
    return text.value.decode() if text.value else f"error {status}"


def _query_driver_version(cuda: ctypes.CDLL) -> tuple[int, int]:
    """Return the newest version of CUDA that the driver supports, as (major, minor)."""
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000, version.value % 1000 // 10


def _query_nvrtc_version(path: str) -> tuple[int, int]:
    """Return the version of CUDA to which NVRTC belongs, as (major, minor).

    Raises:
        DeviceError: NVRTC cannot be loaded.
    """
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise DeviceError(f"CUDA's compiler NVRTC cannot be loaded: {error}") from error
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _format_version(version: tuple[int, int]) -> str:
    """Format a version, such as "7.5"."""
    return f"{version[0]}.{version[1]}"
