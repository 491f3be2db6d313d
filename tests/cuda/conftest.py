"""Test the gpuarray back end without a GPU: in the cuda environment, against stubs of its driver.

With ``run``, NVRTC, g++, NVIDIA's headers and libcudnn are real; stubs.c replaces the driver and
cuBLAS. All code compiles, and nothing computes on a device.

With ``emulate``, emulator.cpp replaces NVRTC too: kernels are compiled for the CPU and run there,
and OpenBLAS computes cuBLAS's products. Results are right, except the results of cuDNN.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "runtime"
BENCH = HERE.parents[1] / "bench"
STUBS = {"DRIVER": "libcuda.so.1", "CUBLAS": "libcublas.so.13", "NVRTC": "libnvrtc.so.13"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Make a folder with the stubs and their dependencies for Theano's modules."""
    made = tmp_path_factory.mktemp("cuda")
    for part, soname in STUBS.items():
        # The version of cuBLAS' symbols is its soname.
        (made / "versions").write_text(f"{soname} {{ *; }};\n")
        link = f"-Wl,-soname,{soname},--version-script,versions"
        options = ["-shared", "-fPIC", "-Wall", "-Wno-unused-function", f"-D{part}", link]
        subprocess.run(
            ["gcc", *options, "-o", soname, HERE / "stubs.c", "-ldl"], cwd=made, check=True
        )
    return made


@pytest.fixture(scope="session")
def emulator(tmp_path_factory):
    """Make a folder with the emulator's libraries, and for the kernels that it compiles."""
    made = tmp_path_factory.mktemp("emulator")
    for part, soname in STUBS.items():
        # Do not export the symbols of the C++ library, which the libraries contain.
        names = "cu*; nvrtc*"
        (made / "versions").write_text(f"{soname} {{ global: {names}; local: *; }};\n")
        sources = ["emulator.cpp"] if part == "NVRTC" else ["emulator.cpp", "stubs.c"]
        for source in sources:
            compiler = "gcc" if source.endswith(".c") else "g++"
            options = ["-c", "-fPIC", "-O1", f"-D{part}"]
            subprocess.run([compiler, *options, HERE / source], cwd=made, check=True)
        # The emulator's functions come before the stubs of the same names.
        objects = [f"{Path(source).stem}.o" for source in sources]
        link = f"-Wl,-soname,{soname},--version-script,versions,-z,muldefs"
        static = ["-static-libstdc++", "-static-libgcc"]
        subprocess.run(
            ["g++", "-shared", *static, link, "-o", soname, *objects, "-ldl"], cwd=made, check=True
        )
    return made


@pytest.fixture
def run(folder, tmp_path):
    """Run a Python program on the imitated device; settings of stubs.c are keyword arguments.

    The result has an attribute ``kernels``: the inputs of NVRTC, as (architecture, status).
    """

    def start(*arguments, flags="", **settings):
        kernels = tmp_path / "kernels"
        kernels.write_text("")
        own = {"NVRTC": f"{sys.prefix}/lib/{STUBS['NVRTC']}", "KERNELS": str(kernels), **settings}
        done = start_python(folder, arguments, f"device=cpu,{flags}", tmp_path, own)
        done.kernels = [tuple(line.split()) for line in kernels.read_text().splitlines()]
        return done

    return start


@pytest.fixture
def emulate(emulator, tmp_path):
    """Run a Python program on the emulated device cuda0; flags may name another device."""

    def start(*arguments, flags="", **settings):
        own = {
            "EMULATOR": str(emulator),
            "EMULATOR_HEADER": str(HERE / "emulator.h"),
            "CBLAS": f"{sys.prefix}/lib/libopenblas.so",
            **settings,
        }
        device = "device=cuda0,force_device=True,dnn.enabled=False"
        return start_python(emulator, arguments, f"{device},{flags}", tmp_path, own)

    return start


def start_python(folder, arguments, flags, home, settings):
    """Run this Python with arguments, the libraries of a folder, and Theano's flags."""
    clean = {key: value for key, value in os.environ.items() if key != "THEANORC"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={
            **clean,
            "HOME": str(home),
            "PYTHONPATH": f"{HERE}:{RUNTIME}:{BENCH}",
            "THEANO_FLAGS": f"base_compiledir={folder},gcc.cxxflags=-O0,{flags}",
            "LD_PRELOAD": ":".join(str(folder / soname) for soname in STUBS.values()),
            **settings,
        },
        capture_output=True,
        text=True,
        check=False,
    )
