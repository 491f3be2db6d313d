"""Write reductions along axes, such as sums, and cumulative operations, such as cumsum."""

from __future__ import annotations

from fuzz.grammar import types
from fuzz.grammar.writer import Variable, Writer

# Reductions that are exact on integers.
EXACT = ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all")


def write(writer: Writer) -> Variable:
    """Write a reduction."""
    if writer.decide(15):
        return write_cumulation(writer)
    x = writer.choose_variable(types.ALL, (1, 2, 2, 3, 3))
    name = writer.choose((*EXACT, "sum", "mean", "var", "std", "ptp", "norm", "max_and_argmax"))
    all_axes = list(range(x.ndim))
    writer.random.shuffle(all_axes)
    count = writer.choose(range(1, x.ndim + 1))
    axes = sorted(all_axes[:count])
    if name in ("argmax", "argmin", "ptp", "std"):
        axes = axes[:1]
    if x.dtype in types.COMPLEX and name not in ("sum", "prod", "mean"):
        name = "sum"
    if name in ("max", "min", "argmax", "argmin", "ptp", "max_and_argmax") and not x.exact:
        # Rounding would decide which of two nearly equal elements the reduction selects.
        name = "sum"
    if name in ("any", "all") and not x.discrete:
        name = "max" if x.exact else "sum"
    signed_axes = [axis - x.ndim if writer.decide(30) else axis for axis in axes]
    axis = str(signed_axes[0]) if len(axes) == 1 and writer.decide(70) else str(signed_axes)
    if name in ("argmax", "argmin", "ptp", "std"):
        axis = str(signed_axes[0])
    if writer.decide(20):
        axis, axes = "None", all_axes
    keepdims = name != "ptp" and writer.decide(25)
    dims = [
        "1" if position in axes else dim
        for position, dim in enumerate(x.dims)
        if keepdims or position not in axes
    ]
    options = f", keepdims={keepdims}" if keepdims else ""
    if name in ("sum", "prod") and x.dtype not in types.COMPLEX and writer.decide(25):
        options += f", dtype={writer.choose(('float64', 'int64', x.dtype))!r}"
    if name == "norm":
        if not 1 <= len(axes) <= 2 or x.discrete:
            name = "sum"
        else:
            text = f"T.sqrt(T.sum({x.name} ** 2, axis={axis}{options}))"
            return writer.add(text, x.dtype, dims, x)
    if name == "max_and_argmax":
        text = f"T.max_and_argmax({x.name}, axis={axis}{options})"
        results = writer.add_statement(text)
        writer.add(f"{results}[1]", "int64", dims, x)
        return writer.add(f"{results}[0]", x.dtype, dims, x, exact=True)
    dtype = _compute_dtype(name, x.dtype)
    exact = name in ("sum", "max", "min", "ptp")
    return writer.add(f"T.{name}({x.name}, axis={axis}{options})", dtype, dims, x, exact=exact)


def _compute_dtype(name: str, dtype: str) -> str:
    """Return the type of the result of a reduction, from the type of its operand."""
    if name in ("argmax", "argmin"):
        return "int64"
    if name in ("any", "all"):
        return "bool"
    if name in ("mean", "var", "std"):
        return "float64" if dtype in types.DISCRETE else dtype
    if name in ("sum", "prod") and dtype in types.DISCRETE:
        return "uint64" if dtype in types.UNSIGNED else "int64"
    return dtype


def write_cumulation(writer: Writer) -> Variable:
    """Write cumsum, cumprod, diff, bincount or repeat."""
    x = writer.choose_variable(types.REAL, (1, 2))
    name = writer.choose(("cumsum", "cumprod", "diff", "bincount", "repeat", "cumsum"))
    axis = writer.random.randrange(x.ndim)
    dtype = _compute_dtype("sum", x.dtype)
    if name == "diff":
        dims = [f"{dim}-1" if position == axis else dim for position, dim in enumerate(x.dims)]
        if x.dims[axis] == "1" or x.dtype == "bool":
            name = "cumsum"
        else:
            return writer.add(f"T.diff({x.name}, axis={axis})", x.dtype, dims, x, exact=True)
    if name == "bincount":
        counted = writer.add_input("int64", writer.choose_dims(1, 0), (0, 6))
        return writer.add(f"T.bincount({counted.name})", "int64", (f"n{counted.name}",), counted)
    if name == "repeat":
        count = writer.choose((0, 1, 2, 3))
        dims = [
            f"{dim}x{count}" if position == axis else dim for position, dim in enumerate(x.dims)
        ]
        text = f"T.repeat({x.name}, {count}, axis={axis})"
        return writer.add(text, x.dtype, dims, x, exact=True)
    return writer.add(f"T.{name}({x.name}, axis={axis})", dtype, x.dims, x, exact=name == "cumsum")
