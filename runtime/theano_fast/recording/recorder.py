"""Run a program unchanged, and record the inputs and results of its Theano functions.

The command is ``python recorder.py OPTIONS PROGRAM ARGUMENTS``. OPTIONS is a JSON object:

- ``file``: the record to write.
- ``calls``: the number of first calls of each function to record. The program also records each
  later call whose number is a power of two.
- ``nodes``: the number of the function whose nodes to record too; 0 for none.

This file runs in the program's Python, which may have stock Theano. So it must run on Python 3.7,
and import no module of theano-fast.
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
# A record keeps this number of values of each array, and the means of this number of equal parts of
# the array.
VALUES = 64
# A record has the nodes of only this number of calls, because a call with recorded nodes keeps all
# values of the graph in memory.
NODE_CALLS = 3
MODULE = "theano.compile.function_module"


class Recorder:
    """Record the calls of all functions that Theano compiles."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.functions: list[dict[str, Any]] = []
        self.recorded = 0
        # True while the function of compile_nodes runs: its calls are not recorded.
        self.busy = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Find MODULE when the program imports Theano; watch MODULE after its code has run."""
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
        """Wrap FunctionMaker.__init__ and Function.__call__ to record functions and calls."""
        make, call = module.FunctionMaker.__init__, module.Function.__call__

        def __init__(maker: Any, inputs: Any, outputs: Any, *others: Any, **named: Any) -> None:
            # Keep the unoptimized graph. The optimizer changes a copy of the graph.
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
            recorded: dict[str, Any] = {"call": number}
            inputs = bind_inputs(function, values, named)
            recorded["inputs"] = [summarize(value) for value in inputs]
            if record["number"] == self.options["nodes"] and number <= NODE_CALLS:
                recorded["nodes"] = self.compute_nodes(function, record, inputs)
            returned = call(function, *values, **named)
            if isinstance(returned, dict):
                outputs = list(returned.values())
            else:
                outputs = list(returned) if isinstance(returned, (list, tuple)) else [returned]
            recorded["outputs"] = [summarize(value) for value in outputs]
            recorded["updates"] = [summarize(cell.storage[0]) for _, cell in list_updates(function)]
            self.recorded += 1
            recorded["at"] = self.recorded
            record["calls"].append(recorded)
            return returned

        module.FunctionMaker.__init__, module.Function.__call__ = __init__, __call__

    def record(self, function: Any) -> dict[str, Any]:
        """Return a function's record; make it at the function's first call."""
        if not hasattr(function, "_its_record"):
            maker = function.maker
            outputs = [maker.outputs] if not isinstance(maker.outputs, list) else maker.outputs
            function._its_record = {
                "number": len(self.functions) + 1,
                # If the program gives no name, Theano uses FILE:LINE of theano.function's call.
                "name": os.path.basename(function.name or ""),  # noqa: PTH119
                "line": find_caller(),
                "called": 0,
                "inputs": [str(spec.variable) for spec in maker.expanded_inputs],
                "outputs": [str(spec.variable) for spec in outputs],
                "updates": [name for name, _ in list_updates(function)],
                "calls": [],
            }
            self.functions.append(function._its_record)
        return function._its_record  # type: ignore[no-any-return]

    def compute_nodes(self, function: Any, record: dict[str, Any], inputs: list[Any]) -> list[Any]:
        """Compute all nodes of the unoptimized graph; return summaries of their outputs."""
        self.busy = True
        try:
            if not hasattr(function, "_its_nodes"):
                function._its_nodes, record["nodes"] = compile_nodes(function)
            copies = [value.copy() if hasattr(value, "copy") else value for value in inputs]
            return [summarize(value) for value in function._its_nodes(*copies)]
        finally:
            self.busy = False

    def write(self) -> None:
        """Write the record atomically."""
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


def bind_inputs(function: Any, values: Any, named: dict[str, Any]) -> list[Any]:
    """Return the values of all inputs of a call, including shared variables.

    Args:
        function: the called function.
        values: the positional arguments of the call.
        named: the keyword arguments of the call.
    """
    cells = function.input_storage
    inputs = [cell.storage[0] for cell in cells]
    inputs[: len(values)] = values
    indices = {id(cell): index for index, cell in enumerate(cells)}
    for name, value in named.items():
        # Ignore the keyword output_subset, which is not an input.
        index = indices.get(id(function.finder[name])) if name in function.finder else None
        if index is not None:
            inputs[index] = value
    return inputs


def list_updates(function: Any) -> list[tuple[str, Any]]:
    """Return (name, cell with the value) of each shared variable that a function updates."""
    # The cells have the order of the inputs, also in a copied function or with output_subset.
    pairs = zip(function.maker.expanded_inputs, function.input_storage)  # noqa: B905
    return [(str(spec.variable), cell) for spec, cell in pairs if spec.update is not None]


def compile_nodes(function: Any) -> tuple[Any, list[str]]:
    """Compile a function that returns the outputs of all nodes of an unoptimized graph.

    Args:
        function: the function whose graph is compiled again.

    Returns:
        the new function, and the names of its outputs: node's index, op, and line of the program.
    """
    from theano import config  # noqa: PLC0415
    from theano.compile.io import In  # noqa: PLC0415
    from theano.compile.mode import Mode  # noqa: PLC0415
    from theano.gof.graph import io_toposort  # noqa: PLC0415

    inputs, outputs = function.maker._as_written
    specs = [spec if isinstance(spec, In) else In(spec) for spec in inputs]
    ends = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    ends = [getattr(end, "variable", end) for end in ends if end is not None]
    ends += [spec.update for spec in specs if spec.update is not None]
    variables, names, undefined = [], [], set()
    for number, node in enumerate(io_toposort([spec.variable for spec in specs], ends)):
        # Skip nodes whose output contains uninitialized memory, such as a scan's buffer, even if
        # some elements have been set.
        kind = type(node.op).__name__
        if kind == "AllocEmpty" or (kind == "IncSubtensor" and node.inputs[0] in undefined):
            undefined.update(node.outputs)
            continue
        for output in node.outputs:
            if hasattr(output.type, "dtype"):
                variables.append(output)
                trace = getattr(output.tag, "trace", None) or ()
                names.append(f"{number} {node.op}{format_line(trace)}")
    fresh = [In(spec.variable) for spec in specs]
    # The optimizer fast_compile replaces few nodes.
    mode = Mode(config.linker, "fast_compile")
    maker = type(function.maker)(
        fresh, variables, mode=mode, accept_inplace=True, on_unused_input="ignore"
    )
    return maker.create([None] * len(fresh)), names


def format_line(trace: Any) -> str:
    """Return the program line that created a variable, as " (FILE:LINE)"; "" if it is unknown.

    Args:
        trace: the stacks of calls in the variable's ``tag.trace``. The program line is the
            innermost call that is not in site-packages.
    """
    for stack in trace:
        for file, line, *_ in reversed(stack):
            if "site-packages" not in file:
                return f" ({os.path.basename(file)}:{line})"  # noqa: PTH119
    return ""


def find_caller() -> str:
    """Return FILE:LINE of the innermost stack frame outside of packages and this file."""
    frame = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and "site-packages" not in file:
            return f"{os.path.basename(file)}:{frame.f_lineno}"  # noqa: PTH119
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def summarize(value: Any) -> dict[str, Any]:
    """Return a summary of a value.

    The summary of an array of numbers has its dtype, shape and SHA-256 digest, the largest finite
    magnitude, the number of finite elements, and up to VALUES elements. A longer array also has the
    means of VALUES parts. Complex numbers count as pairs of real numbers. The summary of another
    value has only its type.
    """
    import numpy  # noqa: PLC0415

    stored = value.data if hasattr(value, "toarray") else value
    try:
        array = numpy.ascontiguousarray(stored).reshape(-1)
    except (TypeError, ValueError):
        array = numpy.empty(0, object)
    if array.dtype.kind not in "biufc":
        return {"dtype": type(value).__name__}
    tree: dict[str, Any] = {
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
            tree["largest"] = float(finite.max()) if finite.size else 0.0
            tree["finite"] = int(finite.size)
            tree["sample"] = wide[numpy.linspace(0, wide.size - 1, count).astype(int)].tolist()
            if count < wide.size:
                tree["means"] = [float(part.mean()) for part in numpy.array_split(wide, count)]
    return tree


def main() -> None:
    """Run the program of the command line; write its record when the program ends."""
    _, options, program, *arguments = sys.argv
    recorder = Recorder(json.loads(options))
    sys.meta_path.insert(0, recorder)
    atexit.register(recorder.write)
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))  # noqa: PTH100, PTH120
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
