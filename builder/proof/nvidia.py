"""Prepare processes of an environment to compute on this machine's NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.common import processes
from builder.common.errors import HostToolMissing

# pygpu's own tests read this variable; Theano has flags instead.
ENVIRON = {"GPUARRAY_TEST_DEVICE": "cuda"}
# CUDA_VISIBLE_DEVICES selects one of several GPUs.
PROBE = """
import sys
import pygpu
from theano.gpuarray import driver
try:
    driver.check("cuda")
except driver.DeviceError as error:
    sys.exit(str(error))
print(pygpu.init("cuda").devname)
"""


def find_gpu(python: Path, variables: Mapping[str, str]) -> str:
    """Return the name of the GPU.

    Raises:
        HostToolMissing: Theano cannot use a GPU.
    """
    flags = {"THEANO_FLAGS": "device=cpu"}
    done = processes.run([python, "-c", PROBE], env={**variables, **flags}, check=False)
    last = [f"exit status {done.status}", *done.output.splitlines()][-1]
    if done.status:
        hint = "omit --gpu to compute on the CPU with PoCL"
        raise HostToolMissing(f"no GPU can be used: {last}", hint)
    return last
