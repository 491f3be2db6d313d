"""Import of theano.gpuarray at its first use.

Stock Theano imports gpuarray in the first call of theano.scan, on the CPU too. This takes a quarter
of the time of `import theano`.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

import theano

# gpuarray imports these modules. They are imported here too: after a call of theano.scan, programs
# read them as attributes, and their rewrites run.
DEPENDENCIES = (
    "theano.ifelse",
    "theano.pathparse",
    "theano.sandbox.multinomial",
    "theano.sandbox.rng_mrg",
    "theano.tensor.fft",
    "theano.tensor.nnet.conv3d2d",
    "theano.tensor.nnet.ctc",
    "theano.tensor.nnet.neighbours",
    "theano.tensor.slinalg",
    "theano.tests.breakpoint",
)


def find_gpuarray() -> ModuleType | None:
    """Return theano.gpuarray if it is imported, else None: then no variable is on a device.

    Import the other modules that the import of gpuarray would import.
    """
    import_dependencies()
    # A module becomes an attribute of its package after its import.
    return vars(theano).get("gpuarray")


@functools.cache
def import_dependencies() -> None:
    """Import the modules of DEPENDENCIES; do nothing after the first call of a process."""
    for name in DEPENDENCIES:
        importlib.import_module(name)


def find_attribute(name: str) -> ModuleType:
    """Import and return theano.gpuarray, which programs also read as an attribute of theano.

    Args:
        name: the name of a missing attribute of the module theano.

    Raises:
        AttributeError: the name is not gpuarray.
    """
    if name != "gpuarray":
        raise AttributeError(f"module 'theano' has no attribute {name!r}")
    return importlib.import_module("theano.gpuarray")
