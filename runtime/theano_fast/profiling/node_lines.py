"""Run a program unchanged, and write the source line that made each profiled node.

``-m theano_fast.profiling.node_lines FILE PROGRAM ARGUMENTS`` writes a JSON object to FILE. The
object maps the name of a profile and the index of a node to the program's line that called Theano.
If the program does not import Theano, FILE is not written.

If the environment variable driver_calls.VARIABLE is set, FILE.driver receives the counts of the
driver's calls as JSON.
"""

import atexit
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from theano_fast.profiling import driver_calls


def write(file: Path) -> None:
    """Write the lines of all nodes of profiled functions; write nothing without Theano."""
    profiling = sys.modules.get("theano.compile.profiling")
    if profiling is not None:
        profiles = profiling._atexit_print_list
        file.write_text(json.dumps({get_name(stats): find_lines(stats) for stats in profiles}))


def count_driver_calls(file: Path) -> None:
    """Count the driver's calls in this process; write the counts when the process ends."""
    counter = driver_calls.Counter(Path(os.environ[driver_calls.VARIABLE]))
    sys.meta_path.insert(0, driver_calls.CountAtImport(counter, get_name))
    atexit.register(lambda: file.write_text(json.dumps(counter.to_json())))


def get_name(stats: Any) -> str:
    """Return the name of a ProfileStats, equal to the name of the parsed profiles.Profile."""
    return str(getattr(stats, "name", None) or stats.message)


def find_lines(stats: Any) -> dict[int, str]:
    """Return the lines that made the nodes of a ProfileStats, by the node's index in its graph."""
    orders: dict[Any, dict[Any, int]] = {}
    lines = {}
    for node in stats.apply_time:
        if node.fgraph not in orders:
            nodes = node.fgraph.toposort()
            orders[node.fgraph] = {ordered: index for index, ordered in enumerate(nodes)}
        if line := find_nearest_line(node):
            lines[orders[node.fgraph][node]] = line
    return lines


def find_nearest_line(node: Any) -> str:
    """Return the line that made a node, or "after LINE" with the line of its nearest ancestor.

    Nodes that an optimizer made may have no line. Return "" if no ancestor has a line.
    """
    waiting, seen = [node], {node}
    for ancestor in waiting:
        if line := format_line(getattr(ancestor.outputs[0].tag, "trace", ())):
            return line if ancestor is node else f"after {line}"
        owners = {variable.owner for variable in ancestor.inputs} - {None} - seen
        seen |= owners
        waiting += sorted(owners, key=str)
    return ""


def format_line(trace: Any) -> str:
    """Return the program line that created a variable, as "FILE:LINE: CODE"; "" if it is unknown.

    Args:
        trace: the stacks of calls in the variable's ``tag.trace``. The program line is the
            innermost call that is not in site-packages.
    """
    for stack in trace or ():
        for file, line, _, code in reversed(stack):
            if "site-packages" not in Path(file).parts:
                return f"{file}:{line}: {code}"
    return ""


if __name__ == "__main__":
    _, answer, program, *arguments = sys.argv
    atexit.register(write, Path(answer))
    if driver_calls.VARIABLE in os.environ:
        count_driver_calls(Path(f"{answer}.driver"))
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")
