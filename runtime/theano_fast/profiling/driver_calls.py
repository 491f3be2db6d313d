"""Count the calls of NVIDIA's driver in each call of a Theano function.

``driver_calls.cpp`` is an audit library that writes the counts into a file. :class:`Counter` reads
the file before and after each call of a function.
"""

import importlib.abc
import importlib.machinery
import mmap
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from theano_fast import import_hooks, stack

COMPILER = "x86_64-conda-linux-gnu-g++"
SOURCE = Path(__file__).with_suffix(".cpp")
# The environment variable that names the file.
VARIABLE = "THEANO_FAST_DRIVER_CALLS"
# The struct Group of driver_calls.cpp: name, calls, nanoseconds.
GROUP = struct.Struct("24sQQ")
# Report this number of first calls separately, because they compile kernels and allocate memory.
FIRST = 2

# Maps the name of a group of driver_calls.cpp to (calls, nanoseconds).
Counts = dict[str, tuple[int, int]]


def prepare(folder: Path) -> dict[str, str]:
    """Compile the audit library if the stack's device is cuda.

    Args:
        folder: a directory for the library and its file.

    Returns:
        the environment variables for a process whose driver calls are counted; {} in other stacks.

    Raises:
        subprocess.CalledProcessError: the compiler failed.
    """
    try:
        device = stack.load().axes["device"]
    except stack.StackError:
        return {}
    return compile_library(f"{sys.base_prefix}/bin/{COMPILER}", folder) if device == "cuda" else {}


def compile_library(compiler: str, folder: Path) -> dict[str, str]:
    """Compile the audit library.

    Args:
        compiler: the path of g++.
        folder: a directory for the library and its file.

    Returns:
        the environment variables for a process whose driver calls are counted.

    Raises:
        subprocess.CalledProcessError: the compiler failed.
    """
    library, file = folder / "driver_calls.so", folder / "driver_calls"
    options = ["-shared", "-fPIC", "-O2", "-std=c++17", "-nodefaultlibs"]
    subprocess.run([compiler, *options, "-o", library, SOURCE, "-lc"], check=True)
    file.write_bytes(b"")
    return {"LD_AUDIT": str(library), VARIABLE: str(file)}


def read(file: Path) -> Counts:
    """Return the counts in a file; {} if the process loaded no driver."""
    with file.open("rb") as opened:
        try:
            memory = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            return {}
        with memory:
            return _parse(memory)


def _parse(memory: Any) -> Counts:
    rows = GROUP.iter_unpack(memory)
    return {name.rstrip(b"\0").decode(): (calls, spent) for name, calls, spent in rows}


class Counter:
    """Counter of the driver's calls in each call of a function.

    The name of a function's profile identifies the function.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        # Maps the name of a profile to a list: the counts of each of the FIRST first calls, then
        # the sums of the counts of all later calls.
        self.counts: dict[str, list[Counts]] = {}
        self.calls: dict[str, int] = {}

    def wrap(self, call: Callable[..., Any], get_name: Callable[[Any], str]) -> Callable[..., Any]:
        """Return a method for Function that calls ``call`` and counts the driver's calls.

        Args:
            call: Theano's method Function.__call__.
            get_name: a function that returns the name of a ProfileStats.
        """

        @wraps(call)
        def call_and_count(function: Any, *args: Any, **kwargs: Any) -> Any:
            before = read(self.file)
            try:
                return call(function, *args, **kwargs)
            finally:
                if function.profile:
                    self._add(get_name(function.profile), before, read(self.file))

        return call_and_count

    def _add(self, name: str, before: Counts, after: Counts) -> None:
        zero = (0, 0)
        spent = {
            group: (calls - before.get(group, zero)[0], time - before.get(group, zero)[1])
            for group, (calls, time) in after.items()
        }
        number = self.calls[name] = self.calls.get(name, 0) + 1
        sums = self.counts.setdefault(name, [])
        if number <= FIRST + 1:
            sums.append(spent)
        else:
            # The sums have no groups if the process loads the driver in a later call.
            later = sums[FIRST]
            sums[FIRST] = {
                group: (calls + later.get(group, zero)[0], time + later.get(group, zero)[1])
                for group, (calls, time) in spent.items()
            }

    def to_json(self) -> dict[str, Any]:
        """Return a map from a profile's name to the driver's calls and microseconds per call.

        ``first`` has the values of each of the FIRST first calls. ``later`` has the means of all
        later calls.
        """
        return {name: self._describe(name) for name in self.calls}

    def _describe(self, name: str) -> dict[str, Any]:
        sums, later = self.counts[name], self.calls[name] - FIRST
        first = [_average(counts, 1) for counts in sums[:FIRST]]
        return {
            "calls": self.calls[name],
            "first": first,
            "later": _average(sums[FIRST], later) if later > 0 else {},
        }


def _average(counts: Counts, calls: int) -> dict[str, dict[str, float]]:
    return {
        group: {"calls": total / calls, "us": spent / 1000 / calls}
        for group, (total, spent) in counts.items()
        if total
    }


class CountAtImport(importlib.abc.MetaPathFinder):
    """Import finder: wrap Function.__call__ with a counter when a program imports Theano."""

    MODULE = "theano.compile.function_module"

    def __init__(self, counter: Counter, get_name: Callable[[Any], str]) -> None:
        self.counter, self.get_name = counter, get_name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of MODULE; its loader wraps Function.__call__ after the module's code."""
        if fullname != self.MODULE:
            return None
        sys.meta_path.remove(self)
        return import_hooks.find_spec_and_run(fullname, self._wrap_calls)

    def _wrap_calls(self, module: ModuleType) -> None:
        function = module.Function
        function.__call__ = self.counter.wrap(function.__call__, self.get_name)


def render(counts: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table for each function that calls the driver.

    Args:
        counts: the result of Counter.to_json.
    """
    lines = []
    for name, described in counts.items():
        columns = [*described["first"], described["later"]]
        groups = dict.fromkeys(group for column in columns for group in column)
        if not groups:
            continue
        heads = [f"call {i + 1}" for i in range(len(described["first"]))] + ["later calls"]
        lines.append(f"{name}: driver calls, and their time in us, per call")
        lines.append(f"  {'':<22}" + "".join(f"{head:>18}" for head in heads))
        for group in groups:
            cells = [column.get(group, {"calls": 0, "us": 0}) for column in columns]
            text = "".join(f"{cell['calls']:>9,.1f}{cell['us']:>9,.0f}" for cell in cells)
            lines.append(f"  {group:<22}{text}")
    return lines
