"""Restore names that Python, NumPy and Theano removed, for unmaintained programs.

If the environment variable THEANO_FAST_OLD_NAMES is 1, the interpreter restores Python's names when
it starts, and a package's names when the package is imported. ``python -m theano_fast.old_names``
prints the names. Existing names are not replaced. The stack's own packages use none of these names.
"""

import base64
import collections
import collections.abc
import fractions
import importlib.abc
import importlib.machinery
import inspect
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from theano_fast import import_hooks

VARIABLE = "THEANO_FAST_OLD_NAMES"
ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def getargspec(function: Callable[..., Any]) -> ArgSpec:
    """Describe a function's arguments like inspect.getargspec of Python 3.10.

    Raises:
        ValueError: the function has keyword-only arguments or annotations.
    """
    spec = inspect.getfullargspec(function)
    if spec.kwonlyargs or spec.annotations:
        raise ValueError(
            "the function has keyword-only arguments or annotations: use inspect.signature"
        )
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


class Tester:
    """Placeholder for numpy.testing.Tester, which packages instantiate when imported."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Accept and ignore all arguments."""

    def test(self, *arguments: Any, **options: Any) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError(
            "numpy.testing.Tester ran nose, which does not run on this Python: use pytest"
        )

    bench = test


def _return_value(value: Any, _: object) -> Any:
    """Return the value; ignore the second argument, a module."""
    return value


def _import_from(module: str, name: str, _: object) -> Any:
    """Import and return a name from the module that now defines it."""
    return getattr(import_module(module), name)


# Maps the dotted name of a module or class in the standard library to the module or class, and to
# its restored names with their values.
STANDARD: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "base64": (
        base64,
        {"decodestring": base64.decodebytes, "encodestring": base64.encodebytes},
    ),
    "collections": (
        collections,
        {name: getattr(collections.abc, name) for name in collections.abc.__all__},
    ),
    "fractions": (fractions, {"gcd": math.gcd}),
    "inspect": (inspect, {"ArgSpec": ArgSpec, "getargspec": getargspec}),
    "threading.Thread": (threading.Thread, {"isAlive": threading.Thread.is_alive}),
    "time": (time, {"clock": time.process_time}),
}
# Maps a module of a package to its restored names. Maps each restored name to a function that takes
# the module and returns the name's value.
PACKAGES: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "numpy": {
        **{
            kind.__name__: partial(_return_value, kind)
            for kind in (bool, int, float, complex, object, str)
        },
        "alen": lambda np: lambda a: len(np.array(a, copy=False, ndmin=1)),
        "asscalar": lambda _: lambda a: a.item(),
        "long": partial(_return_value, int),
        "rank": lambda np: np.ndim,
        "typeDict": lambda np: np.sctypeDict,
        "unicode": partial(_return_value, str),
    },
    "numpy.testing": {"Tester": partial(_return_value, Tester)},
    "theano": {
        "ProfileMode": lambda _: import_module("theano.compile.profilemode").ProfileMode,
        "Updates": lambda theano: theano.OrderedUpdates,
        # Before 1.0, `import theano` imported theano.sandbox.cuda.
        "sandbox": lambda theano: import_module("theano.sandbox.cuda") and theano.sandbox,
    },
    "theano.compat": {
        name: partial(_import_from, "theano.compat.python2x", name)
        for name in [
            "all",
            "any",
            "combinations",
            "defaultdict",
            "deque",
            "maxsize",
            "partial",
            "product",
        ]
    },
    "theano.compile": {
        "ProfileMode": lambda _: import_module("theano.compile.profilemode").ProfileMode
    },
    "theano.gof": {
        name: partial(_import_from, "theano.configdefaults", name)
        for name in ("local_bitwidth", "python_int_bitwidth")
    },
    "theano.printing": {
        "pydotprint_variables": lambda printing: printing.pydotprint,
    },
    "theano.tensor.basic": {
        name: partial(_import_from, "theano.scalar", name)
        for name in ("autocast_float", "autocast_float_as", "autocast_int")
    },
    "theano.updates": {"Updates": lambda updates: updates.OrderedUpdates},
}
# Maps the old name of a renamed module to its current name.
MODULES: Mapping[str, str] = {"numpy.testing.utils": "numpy.testing"}


def is_active() -> bool:
    """Return whether THEANO_FAST_OLD_NAMES makes new processes restore the names."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def list_names() -> tuple[str, ...]:
    """Return the dotted names that are restored if Python, NumPy or Theano lacks them."""
    standard = {owner: names for owner, (_, names) in STANDARD.items()}
    return (
        *(f"{owner}.{name}" for owner, names in standard.items() for name in names),
        *(f"{owner}.{name}" for owner, names in PACKAGES.items() for name in names),
        *MODULES,
    )


def restore() -> None:
    """Restore Python's names now, and the names of a package when it is imported."""
    for module, names in STANDARD.values():
        add(module, names)
    sys.meta_path.insert(0, Finder())


def add(module: object, names: Mapping[str, Any]) -> None:
    """Add the names that a module or class lacks, with their values."""
    for name, value in names.items():
        if name not in vars(module):
            setattr(module, name, value)


def add_lacking_names(module: ModuleType) -> None:
    """Compute and add the names of PACKAGES that a package lacks."""
    lacking = {
        name: value for name, value in PACKAGES[module.__name__].items() if name not in vars(module)
    }
    add(module, {name: value(module) for name, value in lacking.items()})


class Alias(importlib.abc.Loader):
    """Loader that makes an old name of MODULES an alias of the module with the current name."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new, empty module in sys.modules with the current module."""
        sys.modules[module.__name__] = import_module(MODULES[module.__name__])


class Finder(importlib.abc.MetaPathFinder):
    """Import finder that restores PACKAGES' names at their import, and finds MODULES."""

    def __init__(self) -> None:
        """Record that none of PACKAGES has been imported."""
        self.awaited = set(PACKAGES)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module with the other finders, and restore its names after its code has run."""
        if fullname in MODULES:
            existing = importlib.machinery.PathFinder.find_spec(fullname, path)
            return existing or importlib.machinery.ModuleSpec(fullname, Alias())
        if fullname not in self.awaited:
            return None
        self.awaited.remove(fullname)
        return import_hooks.find_spec_and_run(fullname, add_lacking_names)


def main() -> None:
    """Print the restored names."""
    print(*list_names(), sep="\n")


if __name__ == "__main__":
    main()
