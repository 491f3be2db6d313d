"""Represent a program by the text of its expressions, which can be read, run and shrunk.

For example, a program with the input x0, the statement ("v0", "T.exp(x0)") and the output v0 is the
function theano.function([x0], [v0]).
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

# Maps each name that a program may use to its import. The first three are always imported.
IMPORTS = {
    "np": "import numpy as np",
    "theano": "import theano",
    "T": "import theano.tensor as T",
    "sparse": "from theano import sparse",
    "ifelse": "from theano.ifelse import ifelse",
    "until": "from theano.scan_module import until",
    "pool_2d": "from theano.tensor.signal.pool import pool_2d",
    "images2neibs": "from theano.tensor.nnet.neighbours import images2neibs",
    "RandomStreams": "from theano.tensor.shared_randomstreams import RandomStreams",
    "MRG_RandomStreams": "from theano.sandbox.rng_mrg import MRG_RandomStreams",
    "extra_ops": "from theano.tensor import extra_ops",
    "slinalg": "from theano.tensor import slinalg",
    "nlinalg": "from theano.tensor import nlinalg",
    "typed_list": "from theano import typed_list",
}
# The memory layouts of arguments: NumPy's orders "C" and "F", and functions of fuzz.layouts.
LAYOUTS = ("C", "F", "reversed_axes", "stepped", "unaligned", "frozen", "repeated")
# Maps the name of a mode to the expression of theano.function's argument ``mode``. "fast_run" is
# Theano's default mode. "unoptimized" is the mode of the first oracle.
MODES = {
    "fast_run": "None",
    "unfused": "theano.compile.mode.get_mode('FAST_RUN').excluding('fusion')",
    "kept": "theano.compile.mode.Mode(theano.gof.vm.VM_Linker(allow_gc=False), 'fast_run')",
    "not_in_place": "theano.compile.mode.get_mode('FAST_RUN').excluding('inplace')",
    "fast_compile": "'FAST_COMPILE'",
    "c_linker": "theano.compile.mode.Mode('c|py', 'fast_run')",
    "python": "theano.compile.mode.Mode('py', 'fast_run')",
    "debug": "theano.compile.debugmode.DebugMode(check_isfinite=False, stability_patience=2)",
    "unoptimized": "theano.compile.mode.Mode('py', None)",
}
# Operations on the compiled function f that must not change its results, as statements for a
# script. ``compiled()`` compiles the function anew. fuzz.worker.Task has a method for most
# situations.
SITUATIONS = {
    "copy": "f = f.copy()",
    "copy_sharing": "f = f.copy(share_memory=True)",
    "swap": "f = f.copy(swap={s: theano.shared(s.get_value()) for s in f.get_shared()})",
    "pickle": "f = pickle.loads(pickle.dumps(f))",
    "deepcopy": "f = copy.deepcopy(f)",
    "twice": "f = compiled()",
    "failing": "# before each call, a call fails",
    "trusting": "f.trust_input = True",
    "threads": "# two threads call f and f.copy() at the same time",
    "two_threads": "# two threads call f and compiled() at the same time",
    "subset": "# each call computes one output",
    "again": "# another process, with the same compiledir",
    "unshipped": "# THEANO_FLAGS=cmodule.shipped=,cache_optimizations=False",
}


@dataclass(frozen=True)
class Value:
    """An array for an argument or a shared variable.

    ``data`` has the elements in C order; a complex element is a pair (real, imaginary). ``layout``
    is an element of LAYOUTS.
    """

    dtype: str
    shape: tuple[int, ...]
    data: tuple[Any, ...]
    layout: str = "C"

    def format_source(self) -> str:
        """Return the expression that makes the array."""
        words = ", ".join(_format_number(element) for element in self.data)
        text = f"np.array([{words}], {self.dtype!r})"
        if self.shape != (len(self.data),):
            text += f".reshape({self.shape})" if self.shape else "[0].reshape(())"
            text = text if self.shape else f"np.array({words}, {self.dtype!r})"
        if self.layout == "F":
            return f"np.asfortranarray({text})" if self.shape else text
        return text if self.layout == "C" else f"{self.layout}({text})"


@dataclass(frozen=True)
class Input:
    """A symbolic input; ``borrow`` and ``mutable`` are arguments of theano.In."""

    name: str
    dtype: str
    broadcastable: tuple[bool, ...]
    borrow: bool = False
    mutable: bool = False

    def format_source(self) -> str:
        """Return the statement that makes the input."""
        return f"{self.name} = T.TensorType({self.dtype!r}, {self.broadcastable})({self.name!r})"

    def format_argument(self) -> str:
        """Return the expression that passes the input to theano.function."""
        if not (self.borrow or self.mutable):
            return self.name
        # Theano requires borrow=True for mutable inputs.
        return f"theano.In({self.name}, mutable={self.mutable}, borrow=True)"


@dataclass(frozen=True)
class Program:
    """A function and its calls.

    Args:
        category: a key of fuzz.generator.CATEGORIES.
        shared: pairs of a shared variable's name and its initial value.
        statements: pairs of a target, such as "v0", and an expression, such as "T.exp(x0)".
        outputs: the names of the outputs.
        updates: pairs of a shared variable and its new value, or pairs of "" and a variable that
            contains the updates that a scan returned.
        givens: pairs of an input's name and the name of the variable that replaces it.
        calls: the arguments of each call.
        aliases: pairs of positions of arguments that are the same array in every call.
        borrow: whether the function may reuse the memory of its outputs (theano.Out).
        mode: a key of MODES.
        situations: keys of SITUATIONS in which the program runs, in addition to plain calls.
        tolerance: the permitted relative error of floats.
    """

    category: str
    inputs: tuple[Input, ...]
    shared: tuple[tuple[str, Value], ...]
    statements: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    updates: tuple[tuple[str, str], ...]
    givens: tuple[tuple[str, str], ...]
    calls: tuple[tuple[Value, ...], ...]
    aliases: tuple[tuple[int, int], ...] = ()
    borrow: bool = False
    mode: str = "fast_run"
    situations: tuple[str, ...] = ()
    tolerance: float = 1e-7

    def list_names(self) -> set[str]:
        """Return the names that occur in expressions, outputs, updates and givens."""
        texts = [text for _, text in self.statements]
        texts += [*self.outputs, *(text for pair in self.updates for text in pair if text)]
        texts += [text for pair in self.givens for text in pair]
        return {name for text in texts for name in find_names(text)}

    def format_graph(self) -> str:
        """Return lines with the imports, the inputs, the shared variables and the statements."""
        names = self.list_names() | {"np", "theano", "T"}
        lines = [line for name, line in IMPORTS.items() if name in names]
        lines += [variable.format_source() for variable in self.inputs]
        lines += [
            f"{name} = theano.shared({value.format_source()}, {name!r})"
            for name, value in self.shared
        ]
        lines += [f"{target} = {text}" for target, text in self.statements]
        return "\n".join(lines)

    def format_function(self, mode: str) -> str:
        """Return the expression that compiles the function."""
        outputs = list(self.outputs)
        if self.borrow:
            outputs = [f"theano.Out({name}, borrow=True)" for name in outputs]
        arguments = [f"[{', '.join(variable.format_argument() for variable in self.inputs)}]"]
        arguments += [f"[{', '.join(outputs)}]"]
        pairs = ", ".join(f"({s}, {new})" for s, new in self.updates if s)
        dictionaries = [f"list({new}.items())" for s, new in self.updates if not s]
        if self.updates:
            arguments.append(f"updates={' + '.join([f'[{pairs}]', *dictionaries])}")
        if self.givens:
            pairs = ", ".join(f"({old}, {new})" for old, new in self.givens)
            arguments.append(f"givens=[{pairs}]")
        if mode != "fast_run":
            arguments.append(f"mode={MODES[mode]}")
        arguments.append("on_unused_input='ignore'")
        return f"theano.function({', '.join(arguments)})"

    def format_call(self, number: int) -> list[str]:
        """Return the expressions that make a call's arguments."""
        return [value.format_source() for value in self.calls[number]]

    def make_question(self, mode: str, situations: Iterable[str]) -> dict[str, Any]:
        """Return the question to fuzz.worker, as a dictionary for JSON."""
        return {
            "graph": self.format_graph(),
            "function": self.format_function(mode),
            "shared": [name for name, _ in self.shared],
            "calls": [self.format_call(number) for number in range(len(self.calls))],
            "aliases": list(self.aliases),
            "free": [variable.mutable for variable in self.inputs],
            "borrow": self.borrow,
            "outputs": len(self.outputs),
            "updates": bool(self.updates),
            "situations": list(situations),
        }

    def make_evaluation(self) -> dict[str, Any]:
        """Return the question to fuzz.twins, as a dictionary for JSON.

        fuzz.twins cannot compute a program with givens. The question then has no statements, so
        the outputs have no values.
        """
        return {
            "inputs": [variable.name for variable in self.inputs],
            "shared": [(name, value.format_source()) for name, value in self.shared],
            "statements": [] if self.givens else list(self.statements),
            "outputs": list(self.outputs),
            "updates": list(self.updates),
            "calls": [self.format_call(number) for number in range(len(self.calls))],
            "aliases": list(self.aliases),
        }


def find_names(text: str) -> set[str]:
    """Return the names in an expression."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def find_targets(text: str) -> list[str]:
    """Return the names in a statement's target, such as ["v0", "v1"] for "v0, v1"."""
    return [name.strip() for name in text.split(",")]


def remove_unused(program: Program) -> Program:
    """Return the program without statements, shared variables and inputs that nothing reads."""
    needed = {
        name
        for text in (
            *program.outputs,
            *(t for pair in (*program.updates, *program.givens) for t in pair if t),
        )
        for name in find_names(text)
    }
    statements = []
    for target, text in reversed(program.statements):
        if needed & set(find_targets(target)):
            statements.append((target, text))
            needed |= find_names(text)
    positions = [
        position for position, variable in enumerate(program.inputs) if variable.name in needed
    ]
    new_positions = {old: new for new, old in enumerate(positions)}
    return replace(
        program,
        statements=tuple(reversed(statements)),
        inputs=tuple(program.inputs[position] for position in positions),
        shared=tuple(pair for pair in program.shared if pair[0] in needed),
        calls=tuple(tuple(values[position] for position in positions) for values in program.calls),
        aliases=tuple(
            (new_positions[a], new_positions[b])
            for a, b in program.aliases
            if a in new_positions and b in new_positions
        ),
    )


def to_json(program: Program) -> dict[str, Any]:
    """Return the program as a dictionary for a JSON report."""
    return asdict(program)


def make_script(program: Program, kind: str, expected: Iterable[str], comment: str) -> str:
    """Return the text of a Python file with a test that fails while the difference exists.

    Args:
        kind: the kind of the difference. For "returned", the last call must raise an exception.
        expected: statements that assert the expected results; they follow the calls.
        comment: the description of the difference, for the file's docstring.
    """
    calls = [
        f"    results.append(f({', '.join(program.format_call(n))}))"
        for n in range(len(program.calls))
    ]
    if kind == "returned":
        last = calls.pop().removeprefix("    results.append(")[:-1]
        calls += ["    try:", f"        {last}", "    except Exception:", "        return"]
        expected = [*expected, 'raise AssertionError("no exception")']
    if program.aliases:
        calls.insert(0, f"    # aliased: {program.aliases}")
    situation = [f"    {SITUATIONS[name]}" for name in program.situations]
    body = [
        "",
        "",
        "def test_same() -> None:",
        "    f = compiled()",
        *situation,
        "    results = []",
    ]
    body += [*calls, *(f"    {line}" for line in expected), "", "", 'if __name__ == "__main__":']
    body += ["    test_same()", ""]
    helpers = _format_helpers(name for name in LAYOUTS if any(f"{name}(" in line for line in calls))
    lines = [f'"""{comment}"""', ""]
    lines += [f"import {word}" for word in ("copy", "pickle") if word in program.situations]
    imports, graph = [], program.format_graph().splitlines()
    while graph and graph[0].startswith(("import", "from")):
        imports.append(graph.pop(0))
    lines += [*imports, *helpers]
    lines += ["", "", "def compiled():", *(f"    {line}" for line in graph)]
    lines += [f"    return {program.format_function(program.mode)}"]
    return inspect.cleandoc("\n".join([*lines, *body])) + "\n"


def _format_helpers(names: Iterable[str]) -> list[str]:
    """Return lines that define the named functions of fuzz.layouts, without annotations."""
    text = Path(__file__).with_name("layouts.py").read_text(encoding="utf-8")
    chosen = set(names)
    nodes = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name in chosen]
    for node in nodes:
        # Remove the annotations, because the script does not import their names.
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
    return [line for node in nodes for line in ["", "", *ast.unparse(node).splitlines()]]


def _format_number(element: Any) -> str:
    """Return the expression of an element of an array."""
    if isinstance(element, (list, tuple)):
        return f"complex({_format_number(element[0])}, {_format_number(element[1])})"
    if isinstance(element, float) and not math.isfinite(element):
        return "np.nan" if math.isnan(element) else ("np.inf" if element > 0 else "-np.inf")
    return repr(element)
