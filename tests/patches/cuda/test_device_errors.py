"""cuda/device-errors.patch: the error names the reason why a device cannot be used.

Without the patch, it contains only the name of a failed call.
"""

import ctypes.util
import subprocess
from importlib.util import find_spec

import pytest

CHECK = """
from theano.gpuarray import driver
try:
    driver.check({device!r}, nvrtc={nvrtc!r})
except driver.DeviceError as error:
    print(error)
"""
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
    """Check a device with a driver that behaves as the keyword arguments say."""

    def start(device="cuda0", version=13000, error=0, capability=90):
        source = DRIVER.format(version=version, error=error, capability=capability)
        library = tmp_path / "libcuda.so.1"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
            input=source,
            text=True,
            check=True,
        )
        code = CHECK.format(device=device, nvrtc=str(library))
        done = run_python(code, LD_LIBRARY_PATH=str(tmp_path))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return start


def test_a_device_of_today_is_used(check):
    assert check("cuda") == ""
    assert check("cuda0", version=13020, capability=75) == ""
    assert check("cuda0", version=13020, capability=120) == ""
    assert check("cuda0000:3b:00.0") == ""


@pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver")
def test_a_missing_driver(run_python):
    done = run_python(CHECK.format(device="cuda", nvrtc=""))
    assert "there is no NVIDIA driver (libcuda.so.1" in done.stdout


def test_a_driver_that_does_not_start(check):
    assert "the NVIDIA driver does not start: unknown error" in check(error=999)


def test_a_driver_older_than_the_libraries(check):
    assert "supports CUDA 12.4, and the libraries are of CUDA 13.0" in check(version=12040)


def test_a_device_that_cuda_no_longer_supports(check):
    assert "compute capability 7.0, and this CUDA compiles for 7.5" in check(capability=70)


def test_a_missing_device(check):
    assert "there is no device 2: the NVIDIA driver has 1" in check("cuda2")


def test_a_missing_nvrtc(run_python, check, tmp_path):
    check()
    code = CHECK.format(device="cuda0", nvrtc=str(tmp_path / "libnvrtc.so"))
    done = run_python(code, LD_LIBRARY_PATH=str(tmp_path))
    assert "NVRTC cannot be loaded" in done.stdout


@pytest.mark.skipif(find_spec("pygpu") is not None, reason="there is pygpu")
def test_a_missing_pygpu(run_python):
    done = run_python("import theano", flags="device=cuda")
    assert done.returncode == 0
    [said] = done.stderr.splitlines()
    assert "No GPU is used: there is no pygpu" in said
    forced = run_python("import theano", flags="device=cuda,force_device=True")
    assert forced.returncode == 1
    assert "DeviceError: there is no pygpu" in forced.stderr.splitlines()[-1]
