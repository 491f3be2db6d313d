"""Prepare the processes of an environment to compute on this machine's NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.common import processes
from builder.common.errors import HostToolMissing

# The variable from which pygpu's own tests read the device. Theano reads it from THEANO_FLAGS.
ENVIRON = {"GPUARRAY_TEST_DEVICE": "cuda"}
# A program that prints the name of the GPU, or exits with an error. The user's variable
# CUDA_VISIBLE_DEVICES selects one of several GPUs.
PROBE = """
import sys
import pygpu
from theano.gpuarray import driver
try:
    driver.check_device("cuda")
except driver.DeviceError as error:
    sys.exit(str(error))
print(pygpu.init("cuda").devname)
"""


def find_gpu(python: Path, variables: Mapping[str, str]) -> str:
    """Return the name of the GPU.

    Args:
        python: the interpreter of the environment.
        variables: the environment variables of its process.

    Raises:
        HostToolMissing: Theano cannot use a GPU.
    """
    flags = {"THEANO_FLAGS": "device=cpu"}
    finished = processes.run([python, "-c", PROBE], env={**variables, **flags}, check=False)
    last_line = [f"exit status {finished.status}", *finished.output.splitlines()][-1]
    if finished.status:
        hint = "omit --gpu to compute on the CPU with PoCL"
        raise HostToolMissing(f"no GPU can be used: {last_line}", hint)
    return last_line
