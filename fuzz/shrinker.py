"""Shrink a program: try simpler programs, and keep a simpler program if a condition holds.

In the fuzzer, the condition is that the program's results still differ from an oracle's results.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fuzz.program import Input, Program, Value, find_names, find_targets, remove_unused

# Returns true for the programs that shrinking may keep.
Condition = Callable[[Program], bool]


class Exhausted(Exception):
    """The number of attempts is used up."""


def shrink(program: Program, holds: Condition, attempts: int) -> Program:
    """Return the smallest program found for which ``holds`` is true.

    Args:
        program: a program for which ``holds`` is true.
        holds: the condition.
        attempts: the maximum number of calls of ``holds``.
    """
    budget = itertools.count(attempts, -1)
    tried: set[Program] = {program}

    def attempt(candidate: Program) -> bool:
        if candidate in tried:
            return False
        tried.add(candidate)
        if next(budget) <= 0:
            raise Exhausted
        return holds(candidate)

    def apply(step: Callable[[Program], Iterator[Program]]) -> None:
        """Replace the program by the step's first candidate that passes, repeatedly."""
        nonlocal program
        while passing := next(filter(attempt, step(program)), None):
            program = passing

    try:
        while True:
            before = program
            for step in STEPS:
                apply(step)
            if program == before:
                return program
    except Exhausted:
        return program


def _drop_parts(values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the values without a half, a quarter, ..., and without one value."""
    size = (len(values) + 1) // 2
    while size:
        for first in range(0, len(values), size):
            yield values[:first] + values[first + size :]
        size //= 2


def drop_calls(program: Program) -> Iterator[Program]:
    """Yield programs with fewer calls, first with a single call."""
    if len(program.calls) > 1:
        for call in program.calls:
            yield replace(program, calls=(call,))
        for calls in _drop_parts(program.calls):
            if calls:
                yield replace(program, calls=calls)


def simplify_function(program: Program) -> Iterator[Program]:
    """Yield programs without a situation, mode, option, alias, update or given."""
    if program.situations:
        yield replace(program, situations=())
        for situation in program.situations:
            if len(program.situations) > 1:
                yield replace(program, situations=(situation,))
    if program.mode != "fast_run":
        yield replace(program, mode="fast_run")
    if program.borrow:
        yield replace(program, borrow=False)
    if program.aliases:
        yield replace(program, aliases=())
    for updates in _drop_parts(program.updates):
        yield remove_unused(replace(program, updates=updates))
    for givens in _drop_parts(program.givens):
        yield remove_unused(replace(program, givens=givens))
    for position, variable in enumerate(program.inputs):
        if variable.borrow or variable.mutable:
            plain = Input(variable.name, variable.dtype, variable.broadcastable)
            yield replace(
                program, inputs=(*program.inputs[:position], plain, *program.inputs[position + 1 :])
            )


def drop_outputs(program: Program) -> Iterator[Program]:
    """Yield programs with fewer outputs, and programs in which an operand replaces an output."""
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield remove_unused(replace(program, outputs=(output,)))
        for outputs in _drop_parts(program.outputs):
            if outputs:
                yield remove_unused(replace(program, outputs=outputs))
    texts = dict(program.statements)
    for position, output in enumerate(program.outputs):
        for name in sorted(find_names(texts.get(output, ""))):
            if name in texts or name in {variable.name for variable in program.inputs}:
                outputs = (*program.outputs[:position], name, *program.outputs[position + 1 :])
                yield remove_unused(replace(program, outputs=outputs))


def simplify_statements(program: Program) -> Iterator[Program]:
    """Yield programs in which a simpler expression replaces the expression of a statement."""
    yield remove_unused(program)
    names = [variable.name for variable in program.inputs]
    for position, (target, text) in enumerate(program.statements):
        for other in _simplify_text(text, names):
            statements = list(program.statements)
            statements[position] = target, other
            yield remove_unused(replace(program, statements=tuple(statements)))
        names += find_targets(target)


def inline_statements(program: Program) -> Iterator[Program]:
    """Yield programs in which a statement's expression replaces the only use of its target."""
    for position, (target, text) in enumerate(program.statements):
        if "," in target or target in program.outputs or target == text:
            continue
        later_statements = program.statements[position + 1 :]
        readers = [
            number
            for number, (_, expression) in enumerate(later_statements)
            if target in find_names(expression)
        ]
        other_expressions = [
            *program.outputs,
            *(t for pair in (*program.updates, *program.givens) for t in pair),
        ]
        if len(readers) != 1 or any(
            target in find_names(expression) for expression in other_expressions if expression
        ):
            continue
        reader, old = later_statements[readers[0]]
        tree = ast.parse(old, mode="eval")
        uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == target]
        if len(uses) != 1:
            continue
        new = _replace_node(tree, uses[0], ast.parse(text, mode="eval").body)
        if len(new) > 80:
            continue
        statements = list(program.statements)
        statements[position + 1 + readers[0]] = reader, new
        del statements[position]
        yield replace(program, statements=tuple(statements))


def shorten_values(program: Program) -> Iterator[Program]:
    """Yield programs with shorter arrays.

    First, shorten all axes of one length, in all calls. Then shorten one axis of one argument.
    """
    lengths = sorted({n for call in program.calls for value in call for n in value.shape})
    for length in lengths:
        for new in sorted({0, 1, length // 2, length - 1} & set(range(length))):
            calls = tuple(
                tuple(cut(value, length, new) for value in call) for call in program.calls
            )
            yield replace(program, calls=calls)
    for position in range(len(program.inputs)):
        for number, call in enumerate(program.calls):
            for axis, length in enumerate(call[position].shape):
                for new in sorted({1, length - 1} & set(range(length))):
                    value = cut(call[position], length, new, axis)
                    yield _replace_value(program, number, position, value)


def simplify_values(program: Program) -> Iterator[Program]:
    """Yield programs whose arrays have NumPy's default layout, or elements 0, 1 or 2."""
    for number, call in enumerate(program.calls):
        for position, value in enumerate(call):
            if value.layout != "C":
                yield _replace_value(program, number, position, replace(value, layout="C"))
            for element in (0, 1):
                simple = _make_element(value.dtype, element)
                if any(repr(element_value) != repr(simple) for element_value in value.data):
                    data = (simple,) * len(value.data)
                    yield _replace_value(program, number, position, replace(value, data=data))
            for index, old in enumerate(value.data):
                for element in (0, 1, 2):
                    if repr(old) == repr(_make_element(value.dtype, element)):
                        break
                    simple = _make_element(value.dtype, element)
                    data = (*value.data[:index], simple, *value.data[index + 1 :])
                    yield _replace_value(program, number, position, replace(value, data=data))
    for position, (name, value) in enumerate(program.shared):
        simple = _make_element(value.dtype, 0)
        if any(repr(element) != repr(simple) for element in value.data):
            shared = list(program.shared)
            shared[position] = name, replace(value, data=(simple,) * len(value.data))
            yield replace(program, shared=tuple(shared))


STEPS = (
    drop_calls,
    simplify_function,
    drop_outputs,
    simplify_statements,
    shorten_values,
    inline_statements,
    simplify_statements,
    simplify_values,
)


def cut(value: Value, length: int, new: int, only: int | None = None) -> Value:
    """Return the value with only the first ``new`` elements on all axes of length ``length``.

    If ``only`` is the number of an axis, shorten only this axis.
    """
    shape = [
        new if old == length and only in (None, axis) else old
        for axis, old in enumerate(value.shape)
    ]
    data = [
        value.data[_compute_offset(index, value.shape)]
        for index in itertools.product(*(range(n) for n in shape))
    ]
    return replace(value, shape=tuple(shape), data=tuple(data))


def _compute_offset(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the position of an index among the elements in C order."""
    offset = 0
    for position, length in zip(index, shape):
        offset = offset * length + position
    return offset


def _replace_value(program: Program, call: int, position: int, value: Value) -> Program:
    """Return a copy of the program in which ``value`` replaces one argument of one call."""
    calls = [list(values) for values in program.calls]
    calls[call][position] = value
    return replace(program, calls=tuple(map(tuple, calls)))


def _make_element(dtype: str, number: int) -> Any:
    """Return a number as an element of Value.data."""
    if dtype == "bool":
        return bool(number)
    if dtype.startswith("complex"):
        return (float(number), 0.0)
    return float(number) if dtype.startswith("float") else number


def _simplify_text(text: str, names: list[str]) -> Iterator[str]:
    """Yield simplified texts of an expression, the largest simplifications first."""
    tree = ast.parse(text, mode="eval")
    yielded = {text}
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr):
            continue
        for other in _simplify_node(node, names):
            new = _replace_node(tree, node, other)
            if new not in yielded and not _has_zero_step(new):
                yielded.add(new)
                yield new


def _simplify_node(node: ast.expr, names: list[str]) -> Iterator[ast.expr]:
    """Yield simpler replacements of a node; ``names`` are the variables before the statement."""
    yield from _simplify_constant(node)
    yield from _yield_operands(node)
    yield from _drop_argument(node)
    if isinstance(node, (ast.Name, ast.BinOp, ast.Call, ast.Subscript)):
        for position, name in enumerate(names):
            # Replace a name only by an earlier name, so that shrinking ends.
            if not isinstance(node, ast.Name) or position < _find_position(node.id, names):
                yield ast.Name(name, ast.Load())


def _find_position(name: str, names: list[str]) -> int:
    """Return the position of a name; -1 if the list does not contain the name."""
    return names.index(name) if name in names else -1


def _simplify_constant(node: ast.expr) -> Iterator[ast.expr]:
    """Yield simpler constants.

    For a numeric constant, yield 0, 1 and 2, but stop before a number that equals it. For the name
    of a smaller float type, yield float64.
    """
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            for number in (0, 1, 2):
                if number == node.value:
                    break
                yield ast.Constant(number)
        if node.value in ("float32", "float16"):
            yield ast.Constant("float64")


def _yield_operands(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the operands of an expression."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.Call):
        yield from node.args
        if isinstance(node.func, ast.Attribute):
            yield node.func.value


def _drop_argument(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the node without one of its parts.

    A part is a keyword argument of a call, an element of a list or tuple, or the start, stop or
    step of a slice.
    """
    if isinstance(node, ast.Call):
        for position in range(len(node.keywords)):
            keywords = node.keywords[:position] + node.keywords[position + 1 :]
            yield ast.Call(node.func, node.args, keywords)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for position in range(len(node.elts)):
            yield type(node)(node.elts[:position] + node.elts[position + 1 :], ast.Load())
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        parts: dict[str, Any] = {
            part: getattr(node.slice, part) for part in ("lower", "upper", "step")
        }
        for part, value in parts.items():
            if value is not None:
                yield ast.Subscript(node.value, ast.Slice(**{**parts, part: None}), ast.Load())


def _has_zero_step(text: str) -> bool:
    """Return whether a slice has the step 0, which is an error."""
    slices = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Slice))
    return any(node.step and ast.unparse(node.step).lstrip("-") == "0" for node in slices)


def _replace_node(tree: ast.Expression, old: ast.AST, new: ast.AST) -> str:
    """Return the text of an expression with a node replaced."""
    return ast.unparse(_copy_with(tree, old, new))


def _copy_with(node: ast.AST, old: ast.AST, new: ast.AST) -> Any:
    """Return a copy of a tree in which ``new`` replaces the node ``old``."""
    if node is old:
        return new
    parts: dict[str, Any] = {}
    for name, part in ast.iter_fields(node):
        if isinstance(part, list):
            parts[name] = [_copy_with(e, old, new) if isinstance(e, ast.AST) else e for e in part]
        else:
            parts[name] = _copy_with(part, old, new) if isinstance(part, ast.AST) else part
    return type(node)(**parts)
