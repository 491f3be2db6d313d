"""Products of matrices and vectors: of lengths 0 and 1 too, in every memory order."""

from __future__ import annotations

from fuzz.grammar.elementwise import joined
from fuzz.grammar.writer import Variable, Writer

DTYPES = ("float64", "float64", "float32", "float32", "int64", "int8", "complex128", "float16")
FORMS = (
    "dot",
    "dot",
    "gemm",
    "gemm",
    "gemv",
    "ger",
    "tensordot",
    "batched",
    "batched_tensordot",
    "outer",
    "three",
    "dimshuffled",
    "in_place",
)


def operand(writer: Writer, dtype: str, dims: tuple[str, ...]) -> Variable:
    """A variable of these dimensions."""
    found = [each for each in writer.variables if each.dtype == dtype and each.dims == dims]
    if found and not writer.chance(40):
        return writer.choice(found)
    return writer.input(dtype, dims)


def turned(writer: Writer, x: Variable) -> tuple[str, tuple[str, ...]]:
    """A matrix, or its transpose or a part of it, and the dimensions."""
    form = writer.choice(("{0}", "{0}", "{0}", "{0}.T", "{0}[::-1]", "{0}[:, ::-1]", "{0}[::2]"))
    dims = x.dims
    if form == "{0}.T":
        dims = dims[::-1]
    elif form == "{0}[::2]":
        dims = (f"{dims[0]}[::2]", dims[1])
    return form.format(x.name), dims


def write(writer: Writer) -> Variable:
    """A product."""
    dtype = writer.choice(DTYPES)
    form = writer.choice(FORMS)
    a, b, c = (writer.choice(("a", "b", "c", "c", "1")) for _ in range(3))
    if form == "outer":
        x, y = operand(writer, dtype, (a,)), operand(writer, dtype, (b,))
        return writer.add(f"T.outer({x.name}, {y.name})", dtype, (a, b), x, y, exact=True)
    if form in ("gemv", "ger"):
        x, v = operand(writer, dtype, (a, b)), operand(writer, dtype, (b,))
        text, dims = turned(writer, x)
        if form == "ger":
            w = operand(writer, dtype, (a,))
            scale = writer.choice(("", "2 * ", "-", "0.5 * " if "float" in dtype else ""))
            text = f"{x.name} + {scale}T.outer({w.name}, {v.name})"
            return writer.add(text, dtype, (a, b), x, v, w, exact=True)
        if dims[1] != b:
            text, dims = x.name, x.dims
        sign = writer.choice(("+", "-"))
        if dims[0] not in "abc1":
            return writer.add(f"T.dot({text}, {v.name})", dtype, dims[:1], x, v, exact=True)
        w = operand(writer, dtype, (dims[0],))
        text = f"{writer.choice(('', '2 * '))}{w.name} {sign} T.dot({text}, {v.name})"
        return writer.add(text, dtype, dims[:1], x, v, w, exact=True)
    if form in ("batched", "batched_tensordot"):
        x, y = operand(writer, dtype, ("a", b, c)), operand(writer, dtype, ("a", c, b))
        if form == "batched":
            text = f"T.batched_dot({x.name}, {y.name})"
            return writer.add(text, dtype, ("a", b, b), x, y, exact=True)
        text = f"T.batched_tensordot({x.name}, {y.name}, axes=[2, 1])"
        return writer.add(text, dtype, ("a", b, b), x, y, exact=True)
    if form == "tensordot":
        x, y = operand(writer, dtype, (a, b, c)), operand(writer, dtype, (c, b))
        if writer.chance(50):
            text = f"T.tensordot({x.name}, {y.name}, axes=[[1, 2], [1, 0]])"
            return writer.add(text, dtype, (a,), x, y, exact=True)
        text = f"T.tensordot({x.name}, {y.name}, axes=1)"
        return writer.add(text, dtype, (a, b, b), x, y, exact=True)
    x, y = operand(writer, dtype, (a, b)), operand(writer, dtype, (b, c))
    if form == "dimshuffled":
        v = operand(writer, dtype, (b,))
        text = f"T.dot({v.name}.dimshuffle('x', 0), {y.name})"
        return writer.add(text, dtype, ("1", c), v, y, exact=True)
    left, dims = turned(writer, x)
    if dims[1] != b:
        left, dims = x.name, x.dims
    if form == "three":
        z = operand(writer, dtype, (c, a))
        text = f"T.dot(T.dot({left}, {y.name}), {z.name})"
        return writer.add(text, dtype, (dims[0], a), x, y, z, exact=True)
    if form == "gemm" and dims[0] in "abc1":
        z = operand(writer, dtype, (dims[0], c))
        scale = writer.choice(("", "2 * ", "-", "3 * "))
        other = writer.choice(("", "2 * ", "-1 * "))
        sign = writer.choice("+-")
        text = f"{other}{z.name} {sign} {scale}T.dot({left}, {y.name})"
        return writer.add(text, dtype, joined(z), x, y, z, exact=True)
    if form == "in_place":
        text = f"T.set_subtensor({x.name}[:1], 1)"
        changed = writer.add(text, dtype, x.dims, x, exact=True)
        return writer.add(f"T.dot({changed.name}, {y.name})", dtype, (a, c), changed, y, exact=True)
    right = writer.choice((y.name, f"{y.name}[:, ::-1]"))
    return writer.add(f"T.dot({left}, {right})", dtype, (dims[0], c), x, y, exact=True)
