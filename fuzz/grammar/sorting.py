"""Write statements with sort, argsort, topk and argtopk."""

from __future__ import annotations

from fuzz.grammar import types
from fuzz.grammar.writer import Variable, Writer


def write(writer: Writer) -> Variable:
    """Write a statement that sorts elements, or selects the k largest or smallest elements."""
    x = writer.choose_variable(types.REAL, (1, 2, 2, 3), lambda variable: variable.exact)
    if not x.exact or x.dtype == "bool":
        x = writer.add_input(writer.choose_dtype(types.INTEGERS), writer.choose_dims(2))
    axis = writer.choose((*range(x.ndim), -1))
    form = writer.choose(("sort", "argsort", "topk", "argtopk", "both", "median", "partition"))
    if form == "sort":
        text = f"T.sort({x.name}, axis={writer.choose((axis, axis, None))})"
        dims = x.dims if "None" not in text else (f"n{x.dims}",)
        return writer.add(text, x.dtype, dims, x, exact=True)
    if form == "argsort":
        # Only a stable sort defines the order of equal elements.
        text = f"T.argsort({x.name}, axis={axis}, kind='mergesort')"
        return writer.add(text, "int64", x.dims, x)
    k = writer.choose(("1", "2", "-1", "-2", "3"))
    topk_dims = [
        f"k{k}" if position == axis % x.ndim else dim for position, dim in enumerate(x.dims)
    ]
    if form in ("topk", "partition"):
        text = f"T.sort(T.topk({x.name}, {k}, axis={axis}), axis={axis})"
        return writer.add(text, x.dtype, topk_dims, x, exact=True)
    if form in ("argtopk", "both") and x.ndim == 1:
        # Compute the selected elements, not their positions: topk does not define the order of
        # equal elements.
        text = f"T.sort({x.name}[T.argtopk({x.name}, {k})])"
        return writer.add(text, x.dtype, topk_dims, x, exact=True)
    text = f"T.sort({x.name}, axis={axis})"
    sorted_ = writer.add(text, x.dtype, x.dims, x, exact=True)
    index = ", ".join([":"] * (axis % x.ndim) + ["::-1"])
    return writer.add(f"{sorted_.name}[{index}]", x.dtype, x.dims, sorted_, exact=True)
