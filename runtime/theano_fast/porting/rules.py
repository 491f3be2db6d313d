"""Find the lines of a ported program to check by hand, with advice for each line.

The program is parsed, not run. A rule examines only an expression and the assignments in the scope
of the expression.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from theano_fast.porting.imports import find_imported_names, get_full_name
from theano_fast.porting.replacements import find_replacement

# Functions whose positional arguments must all be integers.
INTEGERS = ("range", "xrange", "reshape", "alloc", "eye")
# Functions whose first argument must consist of integers.
SHAPES = ("zeros", "ones", "empty", "full")
# Keyword arguments that must be integers.
INTEGER_OPTIONS = frozenset(
    {
        "batch_size",
        "ds",
        "filter_shape",
        "image_shape",
        "input_shape",
        "length",
        "minlength",
        "n_steps",
        "ndim",
        "newshape",
        "num",
        "pad",
        "padding",
        "repeats",
        "shape",
        "size",
        "st",
        "stride",
        "ws",
    }
)
# Builtins that return an iterator in Python 3, and a list in Python 2.
LAZY = ("filter", "map", "zip")
# Functions that exhaust an iterator.
READERS = frozenset(
    {
        "all",
        "any",
        "dict",
        "enumerate",
        "list",
        "max",
        "min",
        "set",
        "sorted",
        "sum",
        "tuple",
        "zip",
        "map",
        "filter",
    }
)
# Methods that programs call on lines of text.
TEXT_METHODS = frozenset(
    {
        "lower",
        "lstrip",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "upper",
    }
)
# Functions that Python 3 removed from the module string.
STRING_FUNCTIONS = frozenset(
    {
        "atof",
        "atoi",
        "find",
        "join",
        "joinfields",
        "ljust",
        "lower",
        "lstrip",
        "replace",
        "rjust",
        "rstrip",
        "split",
        "strip",
        "upper",
        "zfill",
    }
)
# Methods of dictionaries that return a view in Python 3, and a list in Python 2.
VIEWS = ("items", "keys", "values")
# The nodes that begin a new scope.
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, order=True)
class Line:
    """The number of a line to check by hand, and the advice."""

    number: int
    advice: str


def find_lines(tree: ast.Module) -> tuple[Line, ...]:
    """Return the lines to check by hand, sorted by number."""
    names = find_imported_names(tree)
    lines: set[Line] = set()
    # With `from __future__ import division`, `/` gave a float in Python 2 too. So skip the first
    # rule, find_divisions.
    scoped = SCOPED[1:] if names.get("division") == "__future__.division" else SCOPED
    for scope in list_scopes(tree):
        for rule in scoped:
            lines.update(rule(scope))
    for node in ast.walk(tree):
        lines.update(find_calls(node, names))
    return tuple(sorted(lines))


def list_scopes(tree: ast.Module) -> Iterator[list[ast.AST]]:
    """Yield a list of nodes for the module and each function, without nodes of inner functions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        scope, nodes = waiting.pop(), []
        stack = list(ast.iter_child_nodes(scope))
        while stack:
            node = stack.pop()
            nodes.append(node)
            if isinstance(node, SCOPES):
                waiting.append(node)
            else:
                stack.extend(ast.iter_child_nodes(node))
        yield nodes


def find_divisions(nodes: list[ast.AST]) -> Iterator[Line]:
    """Find `/` where an integer is needed, such as in an index: Python 2 computed an integer."""
    origins: dict[str, list[ast.BinOp]] = {}
    for _, name, value in sorted(find_bindings(nodes), key=lambda binding: binding[0]):
        if quotients := list(find_quotients(value, origins)):
            origins.setdefault(name, []).extend(quotients)
    for use in find_integers(nodes):
        for division in find_quotients(use, origins):
            changed = ast.unparse(ast.BinOp(division.left, ast.FloorDiv(), division.right))
            yield Line(division.lineno, f"`/` gives a float, but an integer is needed: {changed}")


def find_bindings(nodes: list[ast.AST]) -> Iterator[tuple[int, str, ast.expr]]:
    """Yield (line, name, value) for each assignment, and for each name that a for loop binds.

    The value of a loop's name is the expression that the loop iterates over.
    """
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield node.lineno, ast.unparse(target), node.value
        elif isinstance(node, ast.For):
            for name, value in pair_loop_names(node.target, node.iter):
                yield node.lineno, name, value


def pair_loop_names(target: ast.expr, iterated: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, iterated expression) for a loop; look into enumerate and zip.

    Args:
        target: the names that the loop binds.
        iterated: the expression after ``in``.
    """
    if isinstance(target, ast.Name):
        yield target.id, iterated
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(iterated, ast.Call):
        function = ast.unparse(iterated.func)
        if function == "enumerate" and len(target.elts) > 1 and iterated.args:
            yield from pair_loop_names(target.elts[1], iterated.args[0])
        elif function == "zip":
            for element, argument in zip(target.elts, iterated.args, strict=False):
                yield from pair_loop_names(element, argument)


def find_quotients(
    value: ast.expr, origins: Mapping[str, Sequence[ast.BinOp]]
) -> Iterator[ast.BinOp]:
    """Yield the divisions that make an expression a float in Python 3 but not in Python 2.

    Args:
        value: the expression.
        origins: the divisions in the values of variables, by the variable's name.
    """
    if isinstance(value, (ast.Name, ast.Attribute)):
        yield from origins.get(ast.unparse(value), ())
    elif isinstance(value, (ast.Tuple, ast.List)):
        for element in value.elts:
            yield from find_quotients(element, origins)
    elif isinstance(value, ast.UnaryOp):
        yield from find_quotients(value.operand, origins)
    elif isinstance(value, ast.BinOp):
        if isinstance(value.op, ast.Div):
            if not any(map(is_float, (value.left, value.right))):
                yield value
        elif isinstance(value.op, (ast.Add, ast.Sub, ast.Mult)) and not is_float(value):
            yield from find_quotients(value.left, origins)
            yield from find_quotients(value.right, origins)


def is_float(value: ast.expr) -> bool:
    """Return whether an expression is certainly a float, in Python 2 too."""
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "float",
            "float32",
            "float64",
            "sqrt",
            "time",
        ):
            return True
    return False


def find_integers(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """Yield the expressions that must be integers."""
    for node in nodes:
        if isinstance(node, ast.Subscript):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for item in items:
                parts = (
                    (item.lower, item.upper, item.step) if isinstance(item, ast.Slice) else (item,)
                )
                # Report keys of dictionaries too, because they look like indices.
                yield from (part for part in parts if part is not None)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in INTEGERS:
                yield from node.args
            elif name in SHAPES:
                yield from node.args[:1]
            yield from (word.value for word in node.keywords if word.arg in INTEGER_OPTIONS)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            # `*` repeats a list or a string. The number of repetitions must be an integer.
            for operand, factor in ((node.left, node.right), (node.right, node.left)):
                if isinstance(operand, (ast.List, ast.JoinedStr)) or _is_text(operand):
                    yield factor


def find_iterators(nodes: list[ast.AST]) -> Iterator[Line]:
    """Find results of map, filter and zip that are indexed, passed to len, or read twice."""
    assigned: dict[str, list[ast.expr]] = {}
    reads: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                assigned.setdefault(ast.unparse(target), []).append(node.value)
        for read, times in find_reads(node):
            if is_iterator(read) and times > 1:
                yield make_iterator_line(read)
            reads[ast.unparse(read)] = reads.get(ast.unparse(read), 0) + times
    for name, values in assigned.items():
        if reads.get(name, 0) > 1 and len(values) == 1 and is_iterator(values[0]):
            yield make_iterator_line(values[0])


def is_iterator(value: ast.AST) -> bool:
    """Return whether an expression calls map, filter or zip."""
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in LAZY
    )


def find_views(nodes: list[ast.AST]) -> Iterator[Line]:
    """Find calls of keys(), values() and items() that are indexed or added to a list."""
    for node in nodes:
        if isinstance(node, ast.Subscript):
            operands: tuple[ast.expr, ...] = (node.value,)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            operands = (node.left, node.right)
        else:
            continue
        for operand in operands:
            if (
                isinstance(operand, ast.Call)
                and isinstance(operand.func, ast.Attribute)
                and operand.func.attr in VIEWS
                and not (operand.args or operand.keywords)
            ):
                text = ast.unparse(operand)
                yield Line(operand.lineno, f"{text} is not a list: list({text})")


def make_iterator_line(value: ast.expr) -> Line:
    """Return the line of a call of map, filter or zip, with the advice to make a list."""
    assert isinstance(value, ast.Call)
    name = ast.unparse(value.func)
    return Line(
        value.lineno, f"{name}() is read only once, and has no index or length: list({name}(...))"
    )


def find_reads(node: ast.AST) -> Iterator[tuple[ast.expr, int]]:
    """Yield (expression, number of reads) for the expressions that a node reads.

    A node that iterates over an expression reads it once. An index and len count as two reads,
    because they need a list.
    """
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value, 2
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield node.iter, 1
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "len" and node.args:
            yield node.args[0], 2
        elif node.func.id in READERS:
            yield from ((argument, 1) for argument in node.args)


def find_wrong_modes(nodes: list[ast.AST]) -> Iterator[Line]:  # noqa: PLR0912 - a branch per function
    """Find files whose mode (text or binary) does not fit the values that are read or written."""
    modes = {name: mode for node in nodes for name, mode in find_opened_files(node)}
    for node in nodes:
        if isinstance(node, ast.For) and find_mode(node.iter, modes) == "rb":
            yield from _find_lines_as_text(node)
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        method = name.rpartition(".")[2]
        if isinstance(node.func, ast.Attribute) and method in ("write", "writelines"):
            if (
                find_mode(node.func.value, modes) in ("wb", "ab")
                and node.args
                and _is_text(node.args[0])
            ):
                yield Line(
                    node.lineno, 'text is written to a file opened with "wb": open it with "w"'
                )
        elif name in ("json.dump", "yaml.dump") and len(node.args) > 1:
            if find_mode(node.args[1], modes) in ("wb", "ab"):
                yield Line(node.lineno, f'{name} writes text: open the file with "w", not "wb"')
        elif name in ("csv.writer", "csv.reader", "csv.DictReader", "csv.DictWriter") and node.args:
            if find_mode(node.args[0], modes) in ("wb", "ab", "rb"):
                yield Line(
                    node.lineno,
                    f'{name} uses text: open the file with "w" or "r", and newline=""',
                )
        elif name in ("pickle.dump", "pickle.load"):
            index = 1 if name == "pickle.dump" else 0
            if len(node.args) > index and find_mode(node.args[index], modes) in ("r", "w", ""):
                yield Line(node.lineno, f'{name} uses bytes: open the file with "wb" or "rb"')
        elif name == "print":
            for word in node.keywords:
                if word.arg == "file" and find_mode(word.value, modes) in ("wb", "ab"):
                    yield Line(node.lineno, 'print writes text: open the file with "w", not "wb"')


def find_opened_files(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (variable, mode) for each file that an assignment or a with statement opens."""
    if isinstance(node, ast.Assign) and (mode := find_mode(node.value, {})) is not None:
        yield from ((ast.unparse(target), mode) for target in node.targets)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            mode = find_mode(item.context_expr, {})
            if item.optional_vars is not None and mode is not None:
                yield ast.unparse(item.optional_vars), mode


def find_mode(value: ast.expr, modes: dict[str, str]) -> str | None:
    """Return the mode of an expression that is an open file, None if the mode is unknown.

    Args:
        value: the expression: a call of open, or a variable.
        modes: the known modes, by variable.
    """
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "open":
        mode = [word.value for word in value.keywords if word.arg == "mode"] or value.args[1:2]
        if not mode:
            return "r"
        if isinstance(mode[0], ast.Constant) and isinstance(mode[0].value, str):
            return mode[0].value.replace("+", "")
        return None
    return modes.get(ast.unparse(value))


def _find_lines_as_text(loop: ast.For) -> Iterator[Line]:
    """Find a loop over the lines of a binary file that calls a method of text on a line."""
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    body = [node for statement in loop.body for node in ast.walk(statement)]
    if any(isinstance(n, ast.Attribute) and n.attr in ("decode", "frombuffer") for n in body):
        return
    for node in body:
        if not isinstance(node, ast.Attribute) or node.attr not in TEXT_METHODS:
            continue
        if names & {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}:
            yield Line(loop.lineno, 'lines of a file opened with "rb" are bytes: open it with "r"')
            return


def _is_text(value: ast.AST) -> bool:
    """Return whether an expression is certainly text."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mod, ast.Add)):
        return _is_text(value.left) or (isinstance(value.op, ast.Add) and _is_text(value.right))
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func)
        if isinstance(value.func, ast.Attribute) and value.func.attr in ("format", "join"):
            return _is_text(value.func.value)
        return name in ("str", "json.dumps", "repr")
    return isinstance(value, ast.JoinedStr)


# Rules that need all nodes of a scope. find_lines skips the first rule if `/` was true division.
SCOPED: tuple[Callable[[list[ast.AST]], Iterator[Line]], ...] = (
    find_divisions,
    find_iterators,
    find_wrong_modes,
    find_views,
)


def find_calls(node: ast.AST, names: dict[str, str]) -> Iterator[Line]:
    """Find imports, attributes, calls and methods that changed in Python 3 or in libraries.

    Args:
        node: the node to check.
        names: the result of find_imported_names.
    """
    if isinstance(node, ast.FunctionDef) and node.name == "__div__":
        yield Line(node.lineno, "`/` calls __truediv__: add __truediv__ = __div__")
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        module = "" if isinstance(node, ast.Import) else f"{node.module}."
        for alias in node.names:
            replacement = find_replacement(module + alias.name)
            if replacement and not getattr(node, "level", 0):
                yield Line(node.lineno, f"{module}{alias.name} was removed: write {replacement}")
    if isinstance(node, ast.Attribute) and (name := get_full_name(node, names)):
        replacement = find_replacement(name)
        # If the module itself was removed, the rule above reports its import instead.
        if replacement != find_replacement(name.rpartition(".")[0]):
            yield Line(node.lineno, f"{name} was removed: write {replacement}")
    if not isinstance(node, ast.Call):
        return
    name = get_full_name(node.func, names) or ast.unparse(node.func)
    words = {word.arg for word in node.keywords}
    if name == "yaml.load" and len(node.args) == 1 and "Loader" not in words:
        yield Line(node.lineno, "yaml.load needs a Loader: yaml.safe_load(...)")
    elif name == "h5py.File" and len(node.args) == 1 and "mode" not in words:
        yield Line(
            node.lineno, 'h5py.File without a mode cannot write: to write, h5py.File(..., "a")'
        )
    elif name == "sys.setdefaultencoding":
        yield Line(node.lineno, "text is Unicode: remove sys.setdefaultencoding and reload(sys)")
    elif name.startswith("string.") and name.removeprefix("string.") in STRING_FUNCTIONS:
        yield Line(node.lineno, f"{name} is now a method of strings")
    elif "cmp" in words and (name == "sorted" or name.endswith(".sort")):
        yield Line(node.lineno, "cmp= was removed: write key=functools.cmp_to_key(...)")
