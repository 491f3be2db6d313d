"""Run a program as Python does, and tell at its end which of its lines made each profiled node.

``-m theano_fast.profiling.traced FILE PROGRAM ARGUMENTS`` writes, as JSON, by the profile's name
and the node's number, the line that called Theano. The program imports Theano, or does not.
"""

import atexit
import json
import runpy
import sys
from pathlib import Path
from typing import Any


def write(file: Path) -> None:
    """Write the lines of all nodes of profiled functions; nothing without Theano."""
    profiling = sys.modules.get("theano.compile.profiling")
    if profiling is not None:
        found = {}
        for stats in profiling._atexit_print_list:
            found[name_of(stats)] = lines(stats)
        file.write_text(json.dumps(found))


def name_of(stats: Any) -> str:
    """Return the name that profiles.Profile has for a ProfileStats."""
    return str(getattr(stats, "name", None) or stats.message)


def lines(stats: Any) -> dict[int, str]:
    """Return the lines that made the nodes of a ProfileStats, by the node's number."""
    orders: dict[Any, dict[Any, int]] = {}
    found = {}
    for node in stats.apply_time:
        if node.fgraph not in orders:
            nodes = node.fgraph.toposort()
            orders[node.fgraph] = {each: number for number, each in enumerate(nodes)}
        if line := nearest(node):
            found[orders[node.fgraph][node]] = line
    return found


def nearest(node: Any) -> str:
    """Return the line that made a node, or the nearest one before it: optimizers make some anew."""
    waiting, seen = [node], {node}
    for each in waiting:
        if line := line_of(getattr(each.outputs[0].tag, "trace", ())):
            return line if each is node else f"after {line}"
        before = {variable.owner for variable in each.inputs} - {None} - seen
        seen |= before
        waiting += sorted(before, key=str)
    return ""


def line_of(trace: Any) -> str:
    """Return FILE:LINE: CODE of a variable's trace: the innermost call outside of packages."""
    for stack in trace or ():
        for file, line, _, code in reversed(stack):
            if "site-packages" not in Path(file).parts:
                return f"{file}:{line}: {code}"
    return ""


if __name__ == "__main__":
    _, answer, program, *arguments = sys.argv
    atexit.register(write, Path(answer))
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")
