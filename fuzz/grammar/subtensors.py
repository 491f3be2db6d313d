"""Write indexing: parts of variables that are read, set or incremented, and chains of indices."""

from __future__ import annotations

from fuzz.grammar import types
from fuzz.grammar.writer import Variable, Writer

# Constant indices, repeated by their frequency. Most are in the range of short arrays.
NUMBERS = (0, 0, 1, 1, 2, 3, 4, -1, -1, -2, -3, 5, 100, -100)


def write_number(writer: Writer) -> str:
    """Return the text of an integer index: a constant, or an input of the function."""
    if writer.decide(65):
        return str(writer.choose(NUMBERS))
    return add_position(writer).name


def add_position(writer: Writer, low: int = -4, high: int = 5) -> Variable:
    """Return a scalar integer input whose values are between ``low`` and ``high``.

    The input is new, or an existing input with these bounds.
    """
    candidates = [
        variable
        for variable in writer.inputs
        if not variable.dims and writer.bounds.get(variable.name) == (low, high)
    ]
    if candidates and not writer.decide(40):
        return writer.choose(candidates)
    dtype = writer.choose(("int64", "int64", "int64", "int32", "int8", "int16"))
    return writer.add_input(dtype, (), (low, high))


def write_slice(writer: Writer, dim: str) -> tuple[str, str]:
    """Return the text of a slice of a dimension, such as "1:-1:2", and the result's dimension."""
    parts = [write_number(writer) if writer.decide(60) else "" for _ in range(2)]
    step = writer.choose(("", "", "", "-1", "2", "-2", "3", "-3"))
    if not step and writer.decide(5):
        step = add_position(writer).name
    text = ":".join([*parts, step]) if step else ":".join(parts)
    if not any(parts) and step in ("", "-1"):
        return text, dim
    return text, f"{dim}[{text}]"


def write_index(writer: Writer, x: Variable) -> tuple[str, list[str]]:
    """Return the text of a basic index, and the dimensions of its result."""
    texts, dims = [], []
    for dim in x.dims[: writer.choose(range(1, x.ndim + 1))]:
        if writer.decide(25):
            texts.append(write_number(writer))
            continue
        text, result_dim = write_slice(writer, dim)
        texts.append(text)
        dims.append(result_dim)
    if writer.decide(6):
        texts.append("None")
        dims.append("1")
    return ", ".join(texts), [*dims, *x.dims[len([t for t in texts if t != "None"]) :]]


def write(writer: Writer) -> Variable:
    """Write a subtensor, a chain of subtensors, an update, or a function of lengths."""
    return writer.choose(
        (
            write_subtensor,
            write_subtensor,
            write_chain,
            write_update,
            write_update,
            write_advanced_subtensor,
            write_advanced_update,
            write_lengths,
        )
    )(writer)


def write_subtensor(writer: Writer, x: Variable | None = None) -> Variable:
    """Write a subtensor of ``x``, or of a random variable if ``x`` is None."""
    x = x or writer.choose_variable(types.ALL, (1, 1, 2, 2, 3))
    text, dims = write_index(writer, x)
    return writer.add(f"{x.name}[{text}]", x.dtype, dims, x, exact=True)


def write_chain(writer: Writer) -> Variable:
    """Write a subtensor of a subtensor, and perhaps a subtensor of the result."""
    x = writer.choose_variable(types.ALL, (1, 1, 2, 3))
    for _ in range(writer.choose((2, 2, 3))):
        if x.ndim:
            x = write_subtensor(writer, x)
    return x


def write_update(writer: Writer) -> Variable:
    """Write set_subtensor or inc_subtensor of a part of a variable."""
    x = writer.choose_variable(types.REAL, (1, 1, 2, 2, 3))
    text, dims = write_index(writer, x)
    name = writer.choose(("set_subtensor", "inc_subtensor"))
    if x.dtype == "bool":
        name = "set_subtensor"
    candidates = [
        variable
        for variable in writer.variables
        if variable.dims == tuple(dims) and types.upcast(variable.dtype, x.dtype) == x.dtype
    ]
    options = ["1", "0"]
    if x.dtype != "bool":
        options += ["-3", f"{x.name}[{text}] * 2", f"{x.name}[{text}] + 1"]
    if dims and text.count(":") == 1 and text.startswith(":") and x.ndim == 1:
        options.append(f"{x.name}[{text}][::-1]")
    value = writer.choose([*options, *(variable.name for variable in candidates)])
    statement = f"T.{name}({x.name}[{text}], {value})"
    return writer.add(statement, x.dtype, x.dims, x, exact=True)


def add_positions(writer: Writer, bounds: tuple[int, int] = (-2, 1)) -> Variable:
    """Return an input that is a vector or a matrix of positions for an advanced index."""
    candidates = [
        variable
        for variable in writer.inputs
        if writer.bounds.get(variable.name) == bounds and variable.dims
    ]
    if candidates and writer.decide(60):
        return writer.choose(candidates)
    dtype = writer.choose(("int64", "int64", "int32", "int8", "uint8", "int16"))
    if dtype == "uint8":
        bounds = (0, bounds[1])
    return writer.add_input(dtype, writer.choose_dims(writer.choose((1, 1, 1, 2)), 5), bounds)


def write_advanced_index(writer: Writer, x: Variable) -> tuple[str, list[str] | None]:
    """Return the text of an advanced index, and the dimensions of its result.

    The dimensions are None if they are unknown.
    """
    i = add_positions(writer)
    kind = writer.choose(("first", "first", "two", "last", "mask", "constant", "mixed"))
    if kind == "two" and x.ndim >= 2:
        j = i if writer.decide(50) else writer.add_input("int64", i.dims, (-2, 1))
        return f"{i.name}, {j.name}", [*i.dims, *x.dims[2:]]
    if kind == "last" and x.ndim >= 2:
        return f":, {i.name}", [x.dims[0], *i.dims, *x.dims[2:]]
    if kind == "mixed" and x.ndim >= 2 and i.ndim == 1:
        text, result_dim = write_slice(writer, x.dims[0])
        return f"{text}, {i.name}", [result_dim, *i.dims, *x.dims[2:]]
    if kind == "constant":
        return writer.choose(("[0, 0]", "[1, 0]", "[0, -1, 0]", "[]")), None
    if kind == "mask" and x.discrete:
        return f"T.gt({x.name}, 0).nonzero()", None
    return i.name, [*i.dims, *x.dims[1:]]


def write_advanced_subtensor(writer: Writer) -> Variable:
    """Write a variable with an advanced index: positions, or a mask."""
    x = writer.choose_variable(types.ALL, (1, 2, 2, 3))
    text, dims = write_advanced_index(writer, x)
    if dims is None:
        name = f"w{len(writer.statements)}"
        ndim = 1 if "nonzero" in text else x.ndim
        dims = [name, *(x.dims[1:] if ndim == x.ndim else [])]
    return writer.add(f"{x.name}[{text}]", x.dtype, dims, x, exact=True)


def write_advanced_update(writer: Writer) -> Variable:
    """Write set_subtensor or inc_subtensor with an advanced index, which may repeat positions."""
    x = writer.choose_variable([d for d in types.REAL if d != "bool"], (1, 2, 2, 3))
    text, dims = write_advanced_index(writer, x)
    name = writer.choose(("set_subtensor", "inc_subtensor", "inc_subtensor"))
    options = ["1", "2"]
    if name == "inc_subtensor":
        options.append(f"{x.name}[{text}]")
    if dims:
        options += [
            variable.name
            for variable in writer.variables
            if variable.dims == tuple(dims) and types.upcast(variable.dtype, x.dtype) == x.dtype
        ]
    statement = f"T.{name}({x.name}[{text}], {writer.choose(options)})"
    return writer.add(statement, x.dtype, x.dims, x, exact=True)


def write_lengths(writer: Writer) -> Variable:
    """Write the size, or the sum or the product of the lengths, of an indexed variable."""
    x = writer.choose_variable(types.ALL, (1, 2, 3))
    text, _ = write_index(writer, x)
    inner = f"{x.name}[{text}]"
    form = writer.choose((f"{inner}.size", f"{inner}.shape.sum()", f"T.shape({inner}).prod()"))
    return writer.add(form, "int64", (), x)
