"""Test the gpuarray back end without a GPU: in the cuda environment, against stubs of its driver.

NVRTC, g++, NVIDIA's headers and libcudnn are real; stubs.c replaces the driver and cuBLAS. So
everything compiles, and nothing computes on a device.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "runtime"
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


@pytest.fixture
def run(folder, tmp_path):
    """Run a Python program on the imitated device; settings of stubs.c are keyword arguments.

    The result has an attribute ``kernels``: the inputs of NVRTC, as (architecture, status).
    """

    def start(*arguments, flags="", **settings):
        kernels = tmp_path / "kernels"
        kernels.write_text("")
        clean = {key: value for key, value in os.environ.items() if key != "THEANORC"}
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            env={
                **clean,
                "HOME": str(tmp_path),
                "PYTHONPATH": f"{HERE}:{RUNTIME}",
                "THEANO_FLAGS": f"device=cpu,base_compiledir={folder},gcc.cxxflags=-O0,{flags}",
                "LD_PRELOAD": ":".join(str(folder / soname) for soname in STUBS.values()),
                "NVRTC": f"{sys.prefix}/lib/{STUBS['NVRTC']}",
                "KERNELS": str(kernels),
                **settings,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        done.kernels = [tuple(line.split()) for line in kernels.read_text().splitlines()]
        return done

    return start
