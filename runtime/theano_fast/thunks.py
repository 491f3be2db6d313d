"""Read how Theano runs the nodes of a compiled function: as C from a module, or as Python."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Thunk:
    """The implementation of a node of a compiled function.

    ``kind`` is the op's class. ``implementation`` is "C" or "Py", as in Theano's profiles.
    ``module`` is the file of the compiled module, "" for Python.
    """

    kind: str
    implementation: str
    module: str


def read(function: Any) -> tuple[Thunk, ...]:
    """Return the thunks of a compiled Theano function, including its scans' steps.

    A thunk in C has the attribute ``cthunk``, which Theano's profiler tests too (``gof/vm.py``).
    """
    thunks = []
    for node, thunk in zip(function.fn.nodes, function.fn.thunks, strict=True):
        compiled = hasattr(thunk, "cthunk")
        module = getattr(getattr(thunk, "thunk", None), "module", None)
        file = getattr(module, "__file__", "") if compiled else ""
        thunks.append(Thunk(type(node.op).__name__, "C" if compiled else "Py", file))
    for op in list_scans(function):
        thunks.extend(read(op.fn))
    return tuple(thunks)


def list_scans(function: Any) -> tuple[Any, ...]:
    """Return the Scan ops of a compiled function."""
    ops = [node.op for node in function.fn.nodes]
    return tuple(op for op in ops if type(op).__name__ == "Scan")


def list_python_scans(function: Any) -> tuple[str, ...]:
    """Return the names of the scans whose loop runs in Python, not in the module ``scan_steps``.

    If ``scan_steps`` is not available, the thunk of a Scan calls the op's method ``execute``.
    """
    pairs = zip(function.fn.nodes, function.fn.thunks, strict=True)
    return tuple(
        str(node.op)
        for node, thunk in pairs
        if type(node.op).__name__ == "Scan" and thunk.perform == node.op.execute
    )
