"""cuda/device-errors.patch: the error message has the reason why a device fails.

Without the patch, the message contains only the name of the driver call that failed.
"""

import ctypes.util
import subprocess
from importlib.util import find_spec

import pytest

CHECK = """
from theano.gpuarray import driver
try:
    driver.check_device({device!r}, nvrtc={nvrtc!r})
except driver.DeviceError as error:
    print(error)
"""
# A stub of NVIDIA's driver and of NVRTC, with one device. Attribute 75 is the major number of the
# compute capability.
DRIVER = """
static int version = {version}, error = {error}, capability = {capability};
int cuInit(unsigned flags) {{ return error; }}
int cuGetErrorString(int e, const char **text) {{ return *text = "unknown error", 0; }}
int cuDriverGetVersion(int *v) {{ return *v = version, 0; }}
int cuDeviceGetCount(int *count) {{ return *count = 1, 0; }}
int cuDeviceGet(int *device, int ordinal) {{ return *device = ordinal, ordinal ? 101 : 0; }}
int cuDeviceGetAttribute(int *value, int attribute, int device) {{
  return *value = attribute == 75 ? capability / 10 : capability % 10, 0;
}}
int nvrtcVersion(int *major, int *minor) {{ return *major = 13, *minor = 0, 0; }}
"""


@pytest.fixture
def check(run_python, tmp_path):
    """Return a function that checks a device on a stub of the driver and returns the message."""

    def check_device(device="cuda0", version=13000, error=0, capability=90):
        """Check a device; return "" if it can be used.

        Args:
            device: the value of the flag device.
            version: the CUDA version that the driver reports: 13020 is 13.2.
            error: the error code of cuInit; 0 is success.
            capability: ten times the compute capability of the device.
        """
        source = DRIVER.format(version=version, error=error, capability=capability)
        library = tmp_path / "libcuda.so.1"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
            input=source,
            text=True,
            check=True,
        )
        code = CHECK.format(device=device, nvrtc=str(library))
        completed = run_python(code, LD_LIBRARY_PATH=str(tmp_path))
        assert completed.returncode == 0, completed.stderr
        return completed.stdout.strip()

    return check_device


def test_a_supported_device_causes_no_error(check):
    assert check("cuda") == ""
    assert check("cuda0", version=13020, capability=75) == ""
    assert check("cuda0", version=13020, capability=120) == ""
    assert check("cuda0000:3b:00.0") == ""


@pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver")
def test_a_missing_driver_is_reported(run_python):
    completed = run_python(CHECK.format(device="cuda", nvrtc=""))
    assert "there is no NVIDIA driver (libcuda.so.1" in completed.stdout


def test_a_driver_that_does_not_start_is_reported(check):
    assert "the NVIDIA driver does not start: unknown error" in check(error=999)


def test_a_driver_older_than_the_libraries_is_reported(check):
    assert "supports CUDA 12.4, and the libraries are of CUDA 13.0" in check(version=12040)


def test_a_device_that_cuda_no_longer_supports_is_reported(check):
    assert "compute capability 7.0, and this CUDA compiles for 7.5" in check(capability=70)


def test_a_missing_device_is_reported(check):
    assert "there is no device 2: the NVIDIA driver has 1" in check("cuda2")


def test_a_missing_nvrtc_is_reported(run_python, check, tmp_path):
    # This call compiles the stub of the driver, libcuda.so.1.
    check()
    code = CHECK.format(device="cuda0", nvrtc=str(tmp_path / "libnvrtc.so"))
    completed = run_python(code, LD_LIBRARY_PATH=str(tmp_path))
    assert "NVRTC cannot be loaded" in completed.stdout


@pytest.mark.skipif(find_spec("pygpu") is not None, reason="there is pygpu")
def test_a_missing_pygpu_is_an_error_only_with_force_device(run_python):
    completed = run_python("import theano", flags="device=cuda")
    assert completed.returncode == 0
    [line] = completed.stderr.splitlines()
    assert "No GPU is used: there is no pygpu" in line
    forced = run_python("import theano", flags="device=cuda,force_device=True")
    assert forced.returncode == 1
    assert "DeviceError: there is no pygpu" in forced.stderr.splitlines()[-1]
