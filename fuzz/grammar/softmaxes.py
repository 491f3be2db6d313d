"""Write softmaxes, their logarithms, cross-entropies, and gradients of cross-entropies."""

from __future__ import annotations

from fuzz.grammar import elementwise, types
from fuzz.grammar.writer import Variable, Writer


def write(writer: Writer) -> Variable:
    """Write a softmax, its logarithm, or a cross-entropy.

    Some forms are expressions that Theano's optimizations replace by softmax.
    """
    dtype = writer.choose(("float64", "float64", "float32", "float16"))
    x = writer.choose_variable((dtype,), 2, new=40)
    form = writer.choose(
        (
            "softmax",
            "log",
            "crossentropy",
            "crossentropy",
            "vector",
            "bias",
            "binary",
            "one_hot",
            "logsumexp",
            "written",
        )
    )
    name = x.name
    if form == "vector":
        v = writer.choose_variable((dtype,), 1)
        return writer.add(f"T.nnet.softmax({v.name})", dtype, ("1", *v.dims), v)
    if form == "bias":
        v = writer.choose_broadcastable(x, (dtype,))
        text = f"T.nnet.softmax({name} + {v.name})"
        dims = elementwise.compute_broadcast_dims(x, v)
        return writer.add(text, dtype, dims, x, v)
    if form == "logsumexp":
        axis = writer.choose((0, 1, None))
        text = f"T.log(T.sum(T.exp({name}), axis={axis}))"
        return writer.add(text, dtype, () if axis is None else (x.dims[1 - axis],), x)
    if form == "written":
        text = f"T.exp({name}) / T.exp({name}).sum(axis=1, keepdims=True)"
        return writer.add(text, dtype, x.dims, x)
    if form == "binary":
        t = writer.add_input(dtype, tuple(d if d in "abcd1" else "a" for d in x.dims), (0, 1))
        text = f"T.nnet.binary_crossentropy(T.nnet.sigmoid({name}), {t.name})"
        return _add_with_gradient(writer, text, dtype, x, x.dims)
    if form in ("crossentropy", "one_hot"):
        y = writer.add_input(
            writer.choose(("int64", "int32", "int8")),
            (x.dims[0],) if x.dims[0] in "abcd1" else ("a",),
            (0, 1),
        )
        if form == "one_hot":
            text = f"T.nnet.categorical_crossentropy(T.nnet.softmax({name}), {y.name})"
        else:
            text = f"-T.log(T.nnet.softmax({name}))[T.arange({y.name}.shape[0]), {y.name}]"
        return _add_with_gradient(writer, text, dtype, x, x.dims[:1])
    call = f"T.nnet.softmax({name})" if form == "softmax" else f"T.nnet.logsoftmax({name})"
    if form == "log" and writer.decide(50):
        call = f"T.log(T.nnet.softmax({name}))"
    return _add_with_gradient(writer, call, dtype, x, x.dims)


def _add_with_gradient(
    writer: Writer, text: str, dtype: str, x: Variable, dims: tuple[str, ...]
) -> Variable:
    """Add the operation ``text`` on x, or the gradient of its sum or its mean."""
    assert dtype in types.FLOATS
    if writer.decide(35):
        reduction = writer.choose(("sum", "mean"))
        return writer.add(f"T.grad(({text}).{reduction}(), {x.name})", dtype, x.dims, x)
    return writer.add(text, dtype, dims, x)
