"""Names that Python and NumPy took away, given back to programs that nobody patches.

With the environment variable THEANO_FAST_OLD_NAMES=1 the interpreter restores them when it starts,
those of packages when they are imported; ``python -m theano_fast.old_names`` lists them. Nothing of
a stack's own leans on them, and none is restored where there is one of that name.
"""

import base64
import collections
import collections.abc
import fractions
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def getargspec(function: Callable[..., Any]) -> ArgSpec:
    """As inspect.getargspec of Python 3.10, whose callers know of no keyword-only arguments."""
    found = inspect.getfullargspec(function)
    if found.kwonlyargs or found.annotations:
        raise ValueError("it has keyword-only arguments or annotations: use inspect.signature")
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


class Tester:
    """As numpy.testing.Tester, of packages that offer to test themselves with nose."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take what programs pass."""

    def test(self, *arguments: Any, **options: Any) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError("numpy.testing.Tester ran nose, which is no more: use pytest")

    bench = test


def of_numpy() -> dict[str, Any]:
    """Return what is restored in numpy, which is being imported."""
    import numpy as np  # noqa: PLC0415

    builtin = {kind.__name__: kind for kind in (bool, int, float, complex, object, str)}
    return builtin | {
        "alen": lambda a: len(np.array(a, copy=False, ndmin=1)),
        "asscalar": lambda a: a.item(),
        "long": int,
        "rank": np.ndim,
        "typeDict": np.sctypeDict,
        "unicode": str,
    }


# By its place, what was there; of packages when they are imported.
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
PACKAGES: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "numpy": of_numpy,
    "numpy.testing": lambda: {"Tester": Tester},
}


def restore() -> None:
    """Restore the names in this process."""
    for module, names in STANDARD.values():
        add(module, names)
    sys.meta_path.insert(0, Finder())


def add(module: object, names: Mapping[str, Any]) -> None:
    """Give a module the names that it has not got."""
    for name, value in names.items():
        if name not in vars(module):
            setattr(module, name, value)


class Finder(importlib.abc.MetaPathFinder):
    """Has PACKAGES' names restored as soon as they are imported."""

    def __init__(self) -> None:
        """Watch for all of PACKAGES."""
        self.awaited = set(PACKAGES)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a package as others do, and add to what its execution does."""
        if fullname not in self.awaited:
            return None
        self.awaited.remove(fullname)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_add(module: ModuleType) -> None:
                execute(module)
                add(module, PACKAGES[fullname]())

            spec.loader.exec_module = execute_and_add  # type: ignore[method-assign]
        return spec


def main() -> None:
    """Print the names that are restored."""
    places = {place: names for place, (_, names) in STANDARD.items()}
    places |= {package: names() for package, names in PACKAGES.items()}
    for place, names in places.items():
        print(*(f"{place}.{name}" for name in sorted(names)), sep="\n")


if __name__ == "__main__":
    main()
