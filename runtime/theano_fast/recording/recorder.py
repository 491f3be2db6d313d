"""Run a program as Python does, and write what its Theano functions were given and computed.

``python recorder.py OPTIONS PROGRAM ARGUMENTS``, OPTIONS being JSON: ``file``; ``calls``, how many
of each function's first calls are recorded, besides those whose number is a power of two; and
``nodes``, the number of the function whose nodes are recorded too, or 0. This file needs Python 3.7
and no module of the project: it runs where the program runs, on stock Theano as well.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import runpy
import sys
from typing import Any

FORMAT = "theano-fast record 1"
# Of each array, this many values and means of as many parts; a smaller one is kept whole.
VALUES = 64
# Calls whose nodes are recorded: each holds all of a graph's values at once.
NODE_CALLS = 3
MODULE = "theano.compile.function_module"


class Recorder:
    """Watches the functions that Theano makes."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.functions: list[dict[str, Any]] = []
        self.recorded = 0
        # Nodes are computed by a function of our own.
        self.busy = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """As a finder of modules: watch Theano's functions once the program has imported them."""
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        import importlib.util  # noqa: PLC0415

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                self.watch(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def watch(self, module: Any) -> None:
        """Replace the methods of Theano's classes that make and call functions."""
        make, call = module.FunctionMaker.__init__, module.Function.__call__

        def __init__(maker: Any, inputs: Any, outputs: Any, *others: Any, **named: Any) -> None:
            # The optimizer changes a copy.
            maker._as_written = inputs, outputs
            make(maker, inputs, outputs, *others, **named)

        def __call__(function: Any, *values: Any, **named: Any) -> Any:
            if self.busy:
                return call(function, *values, **named)
            record = self.record(function)
            record["called"] += 1
            number = record["called"]
            if number > self.options["calls"] and number & (number - 1):
                return call(function, *values, **named)
            told: dict[str, Any] = {"call": number}
            given = bound(function, values, named)
            told["inputs"] = [summary(value) for value in given]
            if record["number"] == self.options["nodes"] and number <= NODE_CALLS:
                told["nodes"] = self.nodes(function, record, given)
            returned = call(function, *values, **named)
            if isinstance(returned, dict):
                outputs = list(returned.values())
            else:
                outputs = list(returned) if isinstance(returned, (list, tuple)) else [returned]
            told["outputs"] = [summary(value) for value in outputs]
            told["updates"] = [summary(cell.storage[0]) for _, cell in updated(function)]
            self.recorded += 1
            told["at"] = self.recorded
            record["calls"].append(told)
            return returned

        module.FunctionMaker.__init__, module.Function.__call__ = __init__, __call__

    def record(self, function: Any) -> dict[str, Any]:
        """Return a function's record, made at its first call."""
        if not hasattr(function, "_its_record"):
            maker = function.maker
            outputs = [maker.outputs] if not isinstance(maker.outputs, list) else maker.outputs
            function._its_record = {
                "number": len(self.functions) + 1,
                # The file and line that made it, where the program does not name it.
                "name": os.path.basename(function.name or ""),  # noqa: PTH119
                "line": caller(),
                "called": 0,
                "inputs": [str(each.variable) for each in maker.expanded_inputs],
                "outputs": [str(each.variable) for each in outputs],
                "updates": [name for name, _ in updated(function)],
                "calls": [],
            }
            self.functions.append(function._its_record)
        return function._its_record  # type: ignore[no-any-return]

    def nodes(self, function: Any, record: dict[str, Any], given: list[Any]) -> list[Any]:
        """Compute each node of the graph as it was written, and return their outputs' summaries."""
        self.busy = True
        try:
            if not hasattr(function, "_its_nodes"):
                function._its_nodes, record["nodes"] = every_node(function)
            copies = [value.copy() if hasattr(value, "copy") else value for value in given]
            return [summary(value) for value in function._its_nodes(*copies)]
        finally:
            self.busy = False

    def write(self) -> None:
        """Write the record: whole, or not at all."""
        theano, numpy = sys.modules.get("theano"), sys.modules.get("numpy")
        tree = {
            "format": FORMAT,
            "program": sys.argv,
            "python": sys.version.split()[0],
            "prefix": sys.prefix,
            "theano": getattr(theano, "__version__", ""),
            "numpy": getattr(numpy, "__version__", ""),
            "functions": self.functions,
        }
        temporary = self.options["file"] + ".tmp"
        with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(tree, file)
        os.replace(temporary, self.options["file"])  # noqa: PTH105


def bound(function: Any, values: Any, named: dict[str, Any]) -> list[Any]:
    """Return the values of all of a function's inputs in a call, shared variables among them."""
    cells = function.input_storage
    found = [cell.storage[0] for cell in cells]
    found[: len(values)] = values
    places = {id(cell): place for place, cell in enumerate(cells)}
    for name, value in named.items():
        # output_subset is no input.
        place = places.get(id(function.finder[name])) if name in function.finder else None
        if place is not None:
            found[place] = value
    return found


def updated(function: Any) -> list[tuple[str, Any]]:
    """Return the shared variables that a function updates: name, and the cell of the value."""
    # With output_subset and copies, cells are in the inputs' order.
    pairs = zip(function.maker.expanded_inputs, function.input_storage)  # noqa: B905
    return [(str(each.variable), cell) for each, cell in pairs if each.update is not None]


def every_node(function: Any) -> tuple[Any, list[str]]:
    """Return a function that computes all nodes of another's graph, and the nodes' names."""
    from theano import config  # noqa: PLC0415
    from theano.compile.io import In  # noqa: PLC0415
    from theano.compile.mode import Mode  # noqa: PLC0415
    from theano.gof.graph import io_toposort  # noqa: PLC0415

    inputs, outputs = function.maker._as_written
    specs = [each if isinstance(each, In) else In(each) for each in inputs]
    ends = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    ends = [getattr(each, "variable", each) for each in ends if each is not None]
    ends += [each.update for each in specs if each.update is not None]
    variables, names, undefined = [], [], set()
    for number, node in enumerate(io_toposort([each.variable for each in specs], ends)):
        # Memory as it is found, and such of which a part is set: what a scan writes to.
        kind = type(node.op).__name__
        if kind == "AllocEmpty" or (kind == "IncSubtensor" and node.inputs[0] in undefined):
            undefined.update(node.outputs)
            continue
        for output in node.outputs:
            if hasattr(output.type, "dtype"):
                variables.append(output)
                trace = getattr(output.tag, "trace", None) or ()
                names.append(f"{number} {node.op}{at_line(trace)}")
    fresh = [In(each.variable) for each in specs]
    # Optimizers would make nodes others.
    mode = Mode(config.linker, "fast_compile")
    maker = type(function.maker)(
        fresh, variables, mode=mode, accept_inplace=True, on_unused_input="ignore"
    )
    return maker.create([None] * len(fresh)), names


def at_line(trace: Any) -> str:
    """Return the file and line of a variable's trace, the innermost outside of packages."""
    for stack in trace:
        for file, line, *_ in reversed(stack):
            if "site-packages" not in file:
                return f" ({os.path.basename(file)}:{line})"  # noqa: PTH119
    return ""


def caller() -> str:
    """Return the file and line that calls a function, outside of packages and of this file."""
    frame = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and "site-packages" not in file:
            return f"{os.path.basename(file)}:{frame.f_lineno}"  # noqa: PTH119
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def summary(value: Any) -> dict[str, Any]:
    """Return what is kept of a value: its hash, some of its values, and means of all parts."""
    import numpy  # noqa: PLC0415

    stored = value.data if hasattr(value, "toarray") else value
    try:
        array = numpy.ascontiguousarray(stored).reshape(-1)
    except (TypeError, ValueError):
        array = numpy.empty(0, object)
    if array.dtype.kind not in "biufc":
        return {"dtype": type(value).__name__}
    told: dict[str, Any] = {
        "dtype": str(array.dtype),
        "shape": list(numpy.shape(value)),
        "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
    }
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    if array.size:
        with numpy.errstate(all="ignore"):
            wide = array.astype("float64")
            count = min(wide.size, VALUES)
            finite = numpy.abs(wide[numpy.isfinite(wide)])
            told["largest"] = float(finite.max()) if finite.size else 0.0
            told["finite"] = int(finite.size)
            told["sample"] = wide[numpy.linspace(0, wide.size - 1, count).astype(int)].tolist()
            if count < wide.size:
                told["means"] = [float(part.mean()) for part in numpy.array_split(wide, count)]
    return told


def main() -> None:
    """Run what the command line names."""
    _, options, program, *arguments = sys.argv
    recorder = Recorder(json.loads(options))
    sys.meta_path.insert(0, recorder)
    atexit.register(recorder.write)
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))  # noqa: PTH100, PTH120
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
