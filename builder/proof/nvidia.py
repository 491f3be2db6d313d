"""NVIDIA's GPU of this machine: what processes of an environment take to compute with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.common import processes
from builder.common.errors import HostToolMissing

# Read by pygpu's own tests; Theano has flags for it.
ENVIRON = {"GPUARRAY_TEST_DEVICE": "cuda"}
# CUDA_VISIBLE_DEVICES chooses, where there are several.
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


def probe(python: Path, variables: Mapping[str, str]) -> str:
    """The name of the GPU.

    Raises:
        HostToolMissing: there is none that can be used.
    """
    flags = {"THEANO_FLAGS": "device=cpu"}
    found = processes.run([python, "-c", PROBE], env={**variables, **flags}, check=False)
    last = [f"exit status {found.status}", *found.output.splitlines()][-1]
    if found.status:
        hint = "leave out --gpu to compute on the CPU, with PoCL"
        raise HostToolMissing(f"no GPU can be used: {last}", hint)
    return last
