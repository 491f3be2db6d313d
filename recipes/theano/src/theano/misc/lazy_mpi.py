"""Import of mpi4py at the first access to MPI, comm or mpi_enabled: the import starts MPI."""

from __future__ import annotations

import functools
from typing import Any


def find_attribute(module: str, name: str) -> Any:
    """Return an attribute that stock Theano sets when it imports mpi4py.

    Args:
        module: the name of the module that lacks the attribute.
        name: the name of the attribute.

    Raises:
        AttributeError: the name is no attribute of MPI, or mpi4py cannot be imported.
    """
    if name not in {"MPI", "comm", "mpi_enabled"}:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    try:
        from mpi4py import MPI  # type: ignore[import-not-found]  # noqa: PLC0415
    except (ImportError, RuntimeError) as error:
        if name == "mpi_enabled":
            return False
        raise AttributeError(f"{module}.{name}: {error}") from error
    return {"MPI": MPI, "comm": MPI.COMM_WORLD, "mpi_enabled": True}[name]


find_tensor_attribute = functools.partial(find_attribute, "theano.tensor")
find_io_attribute = functools.partial(find_attribute, "theano.tensor.io")
