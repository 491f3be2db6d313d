"""Fixtures that run Theano's gpuarray back end without a GPU, in the cuda environment.

The fixture ``run`` tests compilation. NVRTC, g++, NVIDIA's headers and libcudnn are real, and
stubs.c replaces the driver and cuBLAS. No kernel runs, so there are no results.

The fixture ``emulate`` tests results. emulator.cpp replaces NVRTC, the driver and cuBLAS: kernels
are compiled for the CPU and run there, and OpenBLAS computes the products. cuDNN has no emulation.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "runtime"
BENCH = HERE.parents[1] / "bench"
# Maps each part of stubs.c and emulator.cpp to the soname of the library that it replaces.
STUBS = {"DRIVER": "libcuda.so.1", "CUBLAS": "libcublas.so.13", "NVRTC": "libnvrtc.so.13"}


@pytest.fixture(scope="session")
def stub_folder(tmp_path_factory):
    """Compile the libraries of stubs.c into a folder, which is also Theano's base_compiledir."""
    folder = tmp_path_factory.mktemp("cuda")
    for part, soname in STUBS.items():
        # The symbols of cuBLAS have its soname as their version.
        (folder / "versions").write_text(f"{soname} {{ *; }};\n")
        link = f"-Wl,-soname,{soname},--version-script,versions"
        options = ["-shared", "-fPIC", "-Wall", "-Wno-unused-function", f"-D{part}", link]
        subprocess.run(
            ["gcc", *options, "-o", soname, HERE / "stubs.c", "-ldl"], cwd=folder, check=True
        )
    return folder


@pytest.fixture(scope="session")
def emulator_folder(tmp_path_factory):
    """Compile the emulator's libraries into a folder, in which the emulator compiles kernels."""
    folder = tmp_path_factory.mktemp("emulator")
    for part, soname in STUBS.items():
        # Hide the symbols of the C++ library, which is linked statically.
        names = "cu*; nvrtc*"
        (folder / "versions").write_text(f"{soname} {{ global: {names}; local: *; }};\n")
        sources = ["emulator.cpp"] if part == "NVRTC" else ["emulator.cpp", "stubs.c"]
        for source in sources:
            compiler = "gcc" if source.endswith(".c") else "g++"
            options = ["-c", "-fPIC", "-O1", f"-D{part}"]
            subprocess.run([compiler, *options, HERE / source], cwd=folder, check=True)
        # If two functions have the same name, the linker takes the first: the emulator's function.
        objects = [f"{Path(source).stem}.o" for source in sources]
        link = f"-Wl,-soname,{soname},--version-script,versions,-z,muldefs"
        static = ["-static-libstdc++", "-static-libgcc"]
        command = ["g++", "-shared", *static, link, "-o", soname, *objects, "-ldl"]
        subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.fixture
def run(stub_folder, tmp_path):
    """Return a function that runs a Python program on the stubs.

    Keyword arguments are variables for stubs.c. The returned process has an attribute ``kernels``:
    for each kernel that NVRTC compiled, (architecture, status), such as ("sm_90", "0").
    """

    def start(*arguments, flags="", **settings):
        kernels = tmp_path / "kernels"
        kernels.write_text("")
        nvrtc = f"{sys.prefix}/lib/{STUBS['NVRTC']}"
        variables = {"NVRTC": nvrtc, "KERNELS": str(kernels), **settings}
        done = run_python(stub_folder, arguments, f"device=cpu,{flags}", tmp_path, variables)
        done.kernels = [tuple(line.split()) for line in kernels.read_text().splitlines()]
        return done

    return start


@pytest.fixture
def emulate(emulator_folder, tmp_path):
    """Return a function that runs a Python program on the emulated device cuda0.

    ``flags`` are Theano's flags; they may select another device. Keyword arguments are variables.
    """

    def start(*arguments, flags="", **settings):
        variables = {
            "EMULATOR": str(emulator_folder),
            "EMULATOR_HEADER": str(HERE / "emulator.h"),
            "CBLAS": f"{sys.prefix}/lib/libopenblas.so",
            # For this device, libgpuarray uses no machine code of NVRTC.
            "CAPABILITY": "120",
            **settings,
        }
        device = "device=cuda0,force_device=True,dnn.enabled=False"
        return run_python(emulator_folder, arguments, f"{device},{flags}", tmp_path, variables)

    return start


def run_python(folder, arguments, flags, home, variables):
    """Run this interpreter with the libraries in ``folder`` preloaded; return the process."""
    clean = {key: value for key, value in os.environ.items() if key != "THEANORC"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={
            **clean,
            "HOME": str(home),
            "PYTHONPATH": f"{HERE}:{RUNTIME}:{BENCH}",
            "THEANO_FLAGS": f"base_compiledir={folder},gcc.cxxflags=-O0,{flags}",
            "LD_PRELOAD": ":".join(str(folder / soname) for soname in STUBS.values()),
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )
