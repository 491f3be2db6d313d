"""Write changes of shapes (reshape, join, split, roll), allocations, and arithmetic of lengths."""

from __future__ import annotations

from fuzz.grammar import subtensors, types
from fuzz.grammar.writer import Variable, Writer

# Constants for the arithmetic of lengths. Some constants make an int64 overflow.
HUGE = ("2**62", "2**31", "2**33", "-2**62", "2**63 - 1", "1000003", "-1", "0")
COMPARED = ("<", ">", "<=", ">=")


def write(writer: Writer) -> Variable:
    """Write a change of a shape, or arithmetic of lengths."""
    return writer.choose(
        (
            write_reshape,
            write_join,
            write_lengths,
            write_lengths,
            write_allocation,
            write_permutation,
            write_selection,
        )
    )(writer)


def write_reshape(writer: Writer) -> Variable:
    """Write a variable with another shape, or flattened."""
    x = writer.choose_variable(types.ALL, (1, 2, 3))
    name, n = x.name, f"n{x.dims}"
    forms = [
        (f"{name}.flatten()", (n,)),
        (f"{name}.reshape((-1,))", (n,)),
        (f"{name}.reshape(({name}.shape[0], -1))", (x.dims[0], f"{n}/")),
        (f"{name}.reshape(({name}.size,))", (n,)),
        (f"{name}.reshape(({name}.size, 1))", (n, "1")),
        (f"{name}.reshape({name}.shape[::-1])", x.dims[::-1]),
        (f"{name}.reshape((1, -1)).dimshuffle(1, 0)", (n, "1")),
        (
            f"T.reshape({name}, [{name}.shape[0] * 1, {name}.size // {name}.shape[0]])",
            (x.dims[0], f"{n}/"),
        ),
        (f"{name}.flatten({min(2, x.ndim)})", (x.dims[0], f"{n}/")[: min(2, x.ndim)]),
    ]
    text, dims = writer.choose(forms)
    if "1" in x.dims:
        # For only some of these forms, Theano infers that a length is 1 and that the dimension is
        # broadcastable. Do not rely on the inference: give each dimension a unique name.
        dims = tuple(f"?{axis}{dim}" for axis, dim in enumerate(dims))
    return writer.add(text, x.dtype, dims, x, exact=True)


def write_join(writer: Writer) -> Variable:
    """Write join, stack, tile, split or concatenate of variables with equal dimensions."""
    x = writer.choose_variable(types.REAL, (1, 2))
    axis = writer.random.randrange(x.ndim)
    candidates = [
        variable
        for variable in writer.variables
        if variable.dims == x.dims and variable.dtype in types.REAL
    ]
    y = writer.choose(candidates) if candidates else x
    z = writer.choose(candidates) if candidates else x
    dtype = types.upcast(x.dtype, y.dtype, z.dtype)
    form = writer.choose(("join", "join", "stack", "tile", "split", "concatenate"))
    if form == "stack":
        dims = [*x.dims[:axis], "2", *x.dims[axis:]]
        text = f"T.stack([{x.name}, {y.name}], axis={axis})"
        return writer.add(text, types.upcast(x.dtype, y.dtype), dims, x, y, exact=True)
    if form == "tile":
        count = writer.choose((0, 1, 2, 3))
        counts = ", ".join(["1"] * (x.ndim - 1) + [str(count)])
        dims = [*x.dims[:-1], f"{x.dims[-1]}*{count}"]
        return writer.add(f"T.tile({x.name}, ({counts},))", x.dtype, dims, x, exact=True)
    if form == "split":
        first = subtensors.add_position(writer, 0, 3)
        text = (
            f"T.split({x.name}, [{first.name}, {x.name}.shape[{axis}] - {first.name}], 2, {axis})"
        )
        parts = writer.add_statement(text)
        dims = [
            f"{dim}{first.name}" if position == axis else dim for position, dim in enumerate(x.dims)
        ]
        if x.dims[axis] == "1":
            dims[axis] = f"?{parts}"
        return writer.add(f"{parts}[{writer.choose((0, 1))}]", x.dtype, dims, x, exact=True)
    dims = [f"3{dim}" if position == axis else dim for position, dim in enumerate(x.dims)]
    names = f"{x.name}, {y.name}, {z.name}"
    text = f"T.join({axis}, {names})" if form == "join" else f"T.concatenate([{names}], {axis})"
    return writer.add(text, dtype, dims, x, y, z, exact=True)


def write_lengths(writer: Writer) -> Variable:
    """Write a comparison or arithmetic of lengths, with constants that may cause an overflow."""
    x = writer.choose_variable(types.ALL, (1, 2, 3))

    def write_length() -> str:
        if writer.decide(20):
            text, _ = subtensors.write_index(writer, x)
            return f"{x.name}[{text}].size"
        if writer.decide(25):
            return subtensors.add_position(writer).name
        return f"{x.name}.shape[{writer.random.randrange(x.ndim)}]"

    def write_term() -> str:
        form = writer.choose(
            (
                "{0}",
                "{0} * {1}",
                "{0} + {1}",
                "{0} * {2}",
                "{0} * {2} * 2",
                "{0} - {1}",
                "T.minimum({0}, {1})",
                "T.maximum({0}, {2})",
                "T.switch(T.lt({0}, {1}), {0}, {1})",
                "{0} // 2",
                "-{0}",
                "abs({0})",
                "{0} + {2}",
                "{0} % 3",
            )
        )
        return form.format(write_length(), write_length(), writer.choose(HUGE))

    form = writer.choose(
        (
            "{0} {2} {1}",
            "{0} {2} {1}",
            "{0} {2} 0",
            "T.eq({0}, {1})",
            "T.maximum({0}, {1})",
            "T.minimum({0}, {1})",
            "{0}",
            "T.eq({0}, 0)",
            "T.switch({0} {2} {1}, {0}, {1})",
            "T.clip({0}, 0, {1})",
        )
    )
    text = form.format(f"({write_term()})", f"({write_term()})", writer.choose(COMPARED))
    dtype = "bool" if form in ("{0} {2} {1}", "{0} {2} 0") or "T.eq" in form else "int64"
    return writer.add(text, dtype, (), x)


def write_allocation(writer: Writer) -> Variable:
    """Write a new array: zeros, ones, a range, an identity matrix, or a repeated value."""
    x = writer.choose_variable(types.REAL, (1, 2))
    part = writer.choose_broadcastable(x, types.REAL)
    n = subtensors.add_position(writer, 0, 4)
    low = subtensors.add_position(writer)
    size = writer.choose((n.name, f"{x.name}.shape[0]", "3", f"{x.name}.shape[0] + {n.name}"))
    forms = [
        (f"T.zeros_like({x.name})", x.dtype, x.dims),
        (f"T.ones_like({x.name}) * 2", x.dtype, x.dims),
        (
            f"T.alloc({x.name}, {size}, *[{x.name}.shape[k] for k in range({x.ndim})])",
            x.dtype,
            (f"s{size}", *x.dims),
        ),
        (f"T.arange({size})", "int64", (f"s{size}",)),
        (
            f"T.arange({low.name}, {n.name}, {writer.choose((1, 2, -1, 3))})",
            "int64",
            (f"r{low.name}{n.name}",),
        ),
        (
            f"T.eye({size}, {n.name}, {writer.choose((0, 1, -1))})",
            "float64",
            (f"s{size}", f"s{n.name}"),
        ),
        (f"T.zeros(({size}, 2), {x.dtype!r})", x.dtype, (f"s{size}", "2")),
        (f"T.fill({x.name}, 3)", x.dtype, x.dims),
        (f"T.fill({x.name}, {x.name}.shape[0])", x.dtype, x.dims),
    ]
    added = x.ndim - part.ndim
    if added >= 0 and all(dim in ("1", x.dims[added + k]) for k, dim in enumerate(part.dims)):
        shape = f"*[{x.name}.shape[k] for k in range({x.ndim})]"
        forms.append((f"T.alloc({part.name}, {shape})", part.dtype, x.dims))
    text, dtype, dims = writer.choose(forms)
    return writer.add(text, dtype, dims, x, exact=True)


def write_permutation(writer: Writer) -> Variable:
    """Write a variable with another order of elements or dimensions, or with a new dimension."""
    x = writer.choose_variable(types.ALL, (1, 2, 3))
    axis = writer.random.randrange(x.ndim)
    n = writer.choose((0, 1, -1, 2, 5))
    forms = [
        (f"T.roll({x.name}, {n}, axis={axis})", x.dims),
        (f"{x.name}[::-1]", x.dims),
        (f"{x.name}.T", x.dims[::-1]),
        (f"T.shape_padleft({x.name})", ("1", *x.dims)),
        (f"T.shape_padright({x.name}, 1)", (*x.dims, "1")),
        (f"T.addbroadcast(T.shape_padaxis({x.name}, 0), 0)", ("1", *x.dims)),
        (f"T.unbroadcast(T.shape_padleft({x.name}), 0)", ("one", *x.dims)),
    ]
    if x.ndim > 1:
        forms.append((f"T.moveaxis({x.name}, 0, -1)", (*x.dims[1:], x.dims[0])))
        forms.append((f"{x.name}.swapaxes(0, 1)", (x.dims[1], x.dims[0], *x.dims[2:])))
    text, dims = writer.choose(forms)
    return writer.add(text, x.dtype, dims, x, exact=True)


def write_selection(writer: Writer) -> Variable:
    """Write a diagonal, a triangle, or elements selected by a mask."""
    x = writer.choose_variable(types.REAL, 2)
    offset = writer.choose((0, 0, 1, -1, 2))
    forms = [
        (f"T.diagonal({x.name}, {offset})", (f"d{x.dims}{offset}",)),
        (f"T.tril({x.name}, {offset})", x.dims),
        (f"T.triu({x.name}, {offset})", x.dims),
        (f"T.diag({x.name}[0])", (x.dims[1], x.dims[1])),
        (f"T.nonzero_values({x.name})", (f"z{x.name}",)),
    ]
    text, dims = writer.choose(forms)
    return writer.add(text, x.dtype, dims, x, exact=True)
