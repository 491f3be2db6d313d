"""Write products of matrices, vectors and views of matrices, and sums with products."""

from __future__ import annotations

from fuzz.grammar.elementwise import compute_broadcast_dims
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


def choose_operand(writer: Writer, dtype: str, dims: tuple[str, ...]) -> Variable:
    """Return a variable of this type with these dimensions; in some cases, add an input."""
    candidates = [
        variable
        for variable in writer.variables
        if variable.dtype == dtype and variable.dims == dims
    ]
    if candidates and not writer.decide(40):
        return writer.choose(candidates)
    return writer.add_input(dtype, dims)


def choose_view(writer: Writer, x: Variable) -> tuple[str, tuple[str, ...]]:
    """Return the text and the dimensions of a matrix, its transpose, or a strided view of it."""
    form = writer.choose(("{0}", "{0}", "{0}", "{0}.T", "{0}[::-1]", "{0}[:, ::-1]", "{0}[::2]"))
    dims = x.dims
    if form == "{0}.T":
        dims = dims[::-1]
    elif form == "{0}[::2]":
        dims = (f"{dims[0]}[::2]", dims[1])
    return form.format(x.name), dims


def write(writer: Writer) -> Variable:
    """Write a product."""
    dtype = writer.choose(DTYPES)
    form = writer.choose(FORMS)
    a, b, c = (writer.choose(("a", "b", "c", "c", "1")) for _ in range(3))
    if form == "outer":
        x, y = choose_operand(writer, dtype, (a,)), choose_operand(writer, dtype, (b,))
        return writer.add(f"T.outer({x.name}, {y.name})", dtype, (a, b), x, y, exact=True)
    if form in ("gemv", "ger"):
        x, v = choose_operand(writer, dtype, (a, b)), choose_operand(writer, dtype, (b,))
        text, dims = choose_view(writer, x)
        if form == "ger":
            w = choose_operand(writer, dtype, (a,))
            scale = writer.choose(("", "2 * ", "-", "0.5 * " if "float" in dtype else ""))
            text = f"{x.name} + {scale}T.outer({w.name}, {v.name})"
            return writer.add(text, dtype, (a, b), x, v, w, exact=True)
        if dims[1] != b:
            text, dims = x.name, x.dims
        sign = writer.choose(("+", "-"))
        if dims[0] not in "abc1":
            return writer.add(f"T.dot({text}, {v.name})", dtype, dims[:1], x, v, exact=True)
        w = choose_operand(writer, dtype, (dims[0],))
        text = f"{writer.choose(('', '2 * '))}{w.name} {sign} T.dot({text}, {v.name})"
        return writer.add(text, dtype, dims[:1], x, v, w, exact=True)
    if form in ("batched", "batched_tensordot"):
        x, y = (
            choose_operand(writer, dtype, ("a", b, c)),
            choose_operand(writer, dtype, ("a", c, b)),
        )
        if form == "batched":
            text = f"T.batched_dot({x.name}, {y.name})"
            return writer.add(text, dtype, ("a", b, b), x, y, exact=True)
        text = f"T.batched_tensordot({x.name}, {y.name}, axes=[2, 1])"
        return writer.add(text, dtype, ("a", b, b), x, y, exact=True)
    if form == "tensordot":
        x, y = choose_operand(writer, dtype, (a, b, c)), choose_operand(writer, dtype, (c, b))
        if writer.decide(50):
            text = f"T.tensordot({x.name}, {y.name}, axes=[[1, 2], [1, 0]])"
            return writer.add(text, dtype, (a,), x, y, exact=True)
        text = f"T.tensordot({x.name}, {y.name}, axes=1)"
        return writer.add(text, dtype, (a, b, b), x, y, exact=True)
    x, y = choose_operand(writer, dtype, (a, b)), choose_operand(writer, dtype, (b, c))
    if form == "dimshuffled":
        v = choose_operand(writer, dtype, (b,))
        text = f"T.dot({v.name}.dimshuffle('x', 0), {y.name})"
        return writer.add(text, dtype, ("1", c), v, y, exact=True)
    first, dims = choose_view(writer, x)
    if dims[1] != b:
        first, dims = x.name, x.dims
    if form == "three":
        z = choose_operand(writer, dtype, (c, a))
        text = f"T.dot(T.dot({first}, {y.name}), {z.name})"
        return writer.add(text, dtype, (dims[0], a), x, y, z, exact=True)
    if form == "gemm" and dims[0] in "abc1":
        z = choose_operand(writer, dtype, (dims[0], c))
        scale = writer.choose(("", "2 * ", "-", "3 * "))
        z_scale = writer.choose(("", "2 * ", "-1 * "))
        sign = writer.choose("+-")
        text = f"{z_scale}{z.name} {sign} {scale}T.dot({first}, {y.name})"
        return writer.add(text, dtype, compute_broadcast_dims(z), x, y, z, exact=True)
    if form == "in_place":
        text = f"T.set_subtensor({x.name}[:1], 1)"
        changed = writer.add(text, dtype, x.dims, x, exact=True)
        return writer.add(f"T.dot({changed.name}, {y.name})", dtype, (a, c), changed, y, exact=True)
    right = writer.choose((y.name, f"{y.name}[:, ::-1]"))
    return writer.add(f"T.dot({first}, {right})", dtype, (dims[0], c), x, y, exact=True)
