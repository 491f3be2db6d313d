"""Make a program smaller as long as it does what it was found to do."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fuzz.program import Input, Program, Value, live, read, targets

Keeps = Callable[[Program], bool]


class Exhausted(Exception):
    """No attempt is left."""


def shrink(program: Program, keeps: Keeps, attempts: int) -> Program:
    """The smallest program found by so many attempts that ``keeps`` still says yes to."""
    left = itertools.count(attempts, -1)
    tried: set[Program] = {program}

    def attempt(candidate: Program) -> bool:
        if candidate in tried:
            return False
        tried.add(candidate)
        if next(left) <= 0:
            raise Exhausted
        return keeps(candidate)

    try:
        while True:
            before = program
            for step in STEPS:
                program = _apply(program, step, attempt)
            if program == before:
                return program
    except Exhausted as end:
        return next((each for each in end.args if isinstance(each, Program)), program)
    finally:
        tried.clear()


def _apply(
    program: Program, step: Callable[[Program], Iterator[Program]], attempt: Keeps
) -> Program:
    """Take the first candidate that keeps, again and again."""
    again = True
    while again:
        again = False
        for candidate in step(program):
            try:
                kept = attempt(candidate)
            except Exhausted:
                raise Exhausted(program) from None
            if kept:
                program, again = candidate, True
                break
    return program


def _without(values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The values without a half, a quarter, ..., one of them."""
    size = len(values) // 2
    while size:
        for first in range(0, len(values), size):
            yield values[:first] + values[first + size :]
        size //= 2


def fewer_calls(program: Program) -> Iterator[Program]:
    """One call, or fewer."""
    if len(program.calls) > 1:
        for call in program.calls:
            yield replace(program, calls=(call,))
        for calls in _without(program.calls):
            if calls:
                yield replace(program, calls=calls)


def simpler_function(program: Program) -> Iterator[Program]:
    """No situations, the usual mode, no updates, givens or options."""
    if program.situations:
        yield replace(program, situations=())
        for each in program.situations:
            if len(program.situations) > 1:
                yield replace(program, situations=(each,))
    if program.mode != "fast_run":
        yield replace(program, mode="fast_run")
    if program.borrow:
        yield replace(program, borrow=False)
    if program.aliases:
        yield replace(program, aliases=())
    for updates in _without(program.updates):
        yield live(replace(program, updates=updates))
    for givens in _without(program.givens):
        yield live(replace(program, givens=givens))
    for place, one in enumerate(program.inputs):
        if one.borrow or one.mutable:
            plain = Input(one.name, one.dtype, one.broadcastable)
            yield replace(
                program, inputs=(*program.inputs[:place], plain, *program.inputs[place + 1 :])
            )


def fewer_outputs(program: Program) -> Iterator[Program]:
    """One output, or fewer; or in place of one what it is computed from."""
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield live(replace(program, outputs=(output,)))
        for outputs in _without(program.outputs):
            if outputs:
                yield live(replace(program, outputs=outputs))
    known = dict(program.statements)
    for place, output in enumerate(program.outputs):
        for name in sorted(read(known.get(output, ""))):
            if name in known or name in {each.name for each in program.inputs}:
                outputs = (*program.outputs[:place], name, *program.outputs[place + 1 :])
                yield live(replace(program, outputs=outputs))


def simpler_statements(program: Program) -> Iterator[Program]:
    """A statement with a part of an expression in place of all of it."""
    yield live(program)
    names = [each.name for each in program.inputs]
    for place, (target, text) in enumerate(program.statements):
        for other in _expressions(text, names):
            statements = list(program.statements)
            statements[place] = target, other
            yield live(replace(program, statements=tuple(statements)))
        names += targets(target)


def inlined(program: Program) -> Iterator[Program]:
    """A statement that is read once where it is read."""
    for place, (target, text) in enumerate(program.statements):
        if "," in target or target in program.outputs or target == text:
            continue
        rest = program.statements[place + 1 :]
        readers = [n for n, (_, other) in enumerate(rest) if target in read(other)]
        others = [
            *program.outputs,
            *(t for pair in (*program.updates, *program.givens) for t in pair),
        ]
        if len(readers) != 1 or any(target in read(each) for each in others if each):
            continue
        reader, old = rest[readers[0]]
        tree = ast.parse(old, mode="eval")
        uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == target]
        if len(uses) != 1:
            continue
        new = _replaced(tree, uses[0], ast.parse(text, mode="eval").body)
        if len(new) > 80:
            continue
        statements = list(program.statements)
        statements[place + 1 + readers[0]] = reader, new
        del statements[place]
        yield replace(program, statements=tuple(statements))


def shorter_values(program: Program) -> Iterator[Program]:
    """All axes of one length shorter, in a call or in all."""
    lengths = sorted({n for call in program.calls for value in call for n in value.shape})
    for length in lengths:
        for new in sorted({0, 1, length // 2, length - 1} & set(range(length))):
            calls = tuple(
                tuple(cut(value, length, new) for value in call) for call in program.calls
            )
            yield replace(program, calls=calls)
    for place in range(len(program.inputs)):
        for number, call in enumerate(program.calls):
            for axis, length in enumerate(call[place].shape):
                for new in sorted({1, length - 1} & set(range(length))):
                    value = cut(call[place], length, new, axis)
                    yield _with(program, number, place, value)


def simpler_values(program: Program) -> Iterator[Program]:
    """Elements that are 0 or 1, and NumPy's own layout."""
    for number, call in enumerate(program.calls):
        for place, value in enumerate(call):
            if value.layout != "C":
                yield _with(program, number, place, replace(value, layout="C"))
            for element in (0, 1):
                simple = _element(value.dtype, element)
                if any(repr(each) != repr(simple) for each in value.data):
                    data = (simple,) * len(value.data)
                    yield _with(program, number, place, replace(value, data=data))
            for index, each in enumerate(value.data):
                for element in (0, 1, 2):
                    if repr(each) == repr(_element(value.dtype, element)):
                        break
                    simple = _element(value.dtype, element)
                    data = (*value.data[:index], simple, *value.data[index + 1 :])
                    yield _with(program, number, place, replace(value, data=data))
    for place, (name, value) in enumerate(program.shared):
        simple = _element(value.dtype, 0)
        if any(repr(each) != repr(simple) for each in value.data):
            shared = list(program.shared)
            shared[place] = name, replace(value, data=(simple,) * len(value.data))
            yield replace(program, shared=tuple(shared))


STEPS = (
    fewer_calls,
    simpler_function,
    fewer_outputs,
    simpler_statements,
    shorter_values,
    inlined,
    simpler_statements,
    simpler_values,
)


def cut(value: Value, length: int, new: int, only: int | None = None) -> Value:
    """The value with ``new`` elements on the axes that have ``length``, or on one of them."""
    shape = [
        new if each == length and only in (None, axis) else each
        for axis, each in enumerate(value.shape)
    ]
    data = [
        value.data[_offset(index, value.shape)]
        for index in itertools.product(*(range(n) for n in shape))
    ]
    return replace(value, shape=tuple(shape), data=tuple(data))


def _offset(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    found = 0
    for place, length in zip(index, shape):
        found = found * length + place
    return found


def _with(program: Program, call: int, place: int, value: Value) -> Program:
    calls = [list(values) for values in program.calls]
    calls[call][place] = value
    return replace(program, calls=tuple(map(tuple, calls)))


def _element(dtype: str, number: int) -> Any:
    if dtype == "bool":
        return bool(number)
    if dtype.startswith("complex"):
        return (float(number), 0.0)
    return float(number) if dtype.startswith("float") else number


def _expressions(text: str, names: list[str]) -> Iterator[str]:
    """Simpler texts than an expression: the greatest steps first."""
    tree = ast.parse(text, mode="eval")
    seen = {text}
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr):
            continue
        for other in _simpler(node, names):
            new = _replaced(tree, node, other)
            if new not in seen and not _stepless(new):
                seen.add(new)
                yield new


def _simpler(node: ast.expr, names: list[str]) -> Iterator[ast.expr]:
    """What may stand for a node of an expression."""
    yield from _constants(node)
    yield from _parts(node)
    yield from _shorter(node)
    if isinstance(node, (ast.Name, ast.BinOp, ast.Call, ast.Subscript)):
        for place, name in enumerate(names):
            # A name by one before it.
            if not isinstance(node, ast.Name) or place < _place(node.id, names):
                yield ast.Name(name, ast.Load())


def _place(name: str, names: list[str]) -> int:
    return names.index(name) if name in names else -1


def _constants(node: ast.expr) -> Iterator[ast.expr]:
    """Simpler constants."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            for number in (0, 1, 2):
                if number == node.value:
                    break
                yield ast.Constant(number)
        if node.value in ("float32", "float16"):
            yield ast.Constant("float64")


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression is computed from."""
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


def _shorter(node: ast.expr) -> Iterator[ast.expr]:
    """The same without an argument, an element, or a bound of a slice."""
    if isinstance(node, ast.Call):
        for place in range(len(node.keywords)):
            keywords = node.keywords[:place] + node.keywords[place + 1 :]
            yield ast.Call(node.func, node.args, keywords)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for place in range(len(node.elts)):
            yield type(node)(node.elts[:place] + node.elts[place + 1 :], ast.Load())
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        parts: dict[str, Any] = {
            part: getattr(node.slice, part) for part in ("lower", "upper", "step")
        }
        for part, value in parts.items():
            if value is not None:
                yield ast.Subscript(node.value, ast.Slice(**{**parts, part: None}), ast.Load())


def _stepless(text: str) -> bool:
    """Whether a slice has a step of 0, which nothing is."""
    slices = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Slice))
    return any(each.step and ast.unparse(each.step).lstrip("-") == "0" for each in slices)


def _replaced(tree: ast.Expression, old: ast.AST, new: ast.AST) -> str:
    """The text of an expression with another node in place of one."""
    return ast.unparse(_copied(tree, old, new))


def _copied(node: ast.AST, old: ast.AST, new: ast.AST) -> Any:
    if node is old:
        return new
    parts: dict[str, Any] = {}
    for name, part in ast.iter_fields(node):
        if isinstance(part, list):
            parts[name] = [_copied(e, old, new) if isinstance(e, ast.AST) else e for e in part]
        else:
            parts[name] = _copied(part, old, new) if isinstance(part, ast.AST) else part
    return type(node)(**parts)
