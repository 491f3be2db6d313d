"""How Theano runs the nodes of a compiled function: as C from which module, or as Python."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Thunk:
    """One node of a compiled function.

    kind is the op's class, implementation "C" or "Py" as in Theano's profiles, module the
    compiled module's file, "" for Python.
    """

    kind: str
    implementation: str
    module: str


def read(function: Any) -> tuple[Thunk, ...]:
    """Return the thunks of a compiled Theano function, those of its scans' steps included.

    ``cthunk`` is what Theano's own profiler goes by (``gof/vm.py``).
    """
    thunks = []
    for node, thunk in zip(function.fn.nodes, function.fn.thunks, strict=True):
        compiled = hasattr(thunk, "cthunk")
        module = getattr(getattr(thunk, "thunk", None), "module", None)
        file = getattr(module, "__file__", "") if compiled else ""
        thunks.append(Thunk(type(node.op).__name__, "C" if compiled else "Py", file))
    for op in scans(function):
        thunks.extend(read(op.fn))
    return tuple(thunks)


def scans(function: Any) -> tuple[Any, ...]:
    """Return the Scan ops of a compiled function."""
    ops = [node.op for node in function.fn.nodes]
    return tuple(op for op in ops if type(op).__name__ == "Scan")


def python_scans(function: Any) -> tuple[str, ...]:
    """Return the names of the scans whose loop runs in Python, not in C's ``scan_steps``.

    Scan's thunk calls its method ``execute`` where the compiled loop is not to be had.
    """
    pairs = zip(function.fn.nodes, function.fn.thunks, strict=True)
    return tuple(
        str(node.op)
        for node, thunk in pairs
        if type(node.op).__name__ == "Scan" and thunk.perform == node.op.execute
    )
