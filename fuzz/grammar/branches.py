"""Write statements with ifelse, which computes only the variables that a condition selects."""

from __future__ import annotations

from fuzz.grammar import elementwise, subtensors, types
from fuzz.grammar.writer import Variable, Writer


def write_condition(writer: Writer) -> str:
    """Return the text of a scalar condition on an exact variable."""
    x = writer.choose_variable(types.REAL, (0, 1, 2), lambda variable: variable.exact)
    if not x.exact:
        x = writer.add_input("int64", writer.choose_dims(1))
    if x.ndim:
        form = writer.choose(("T.gt({0}.shape[0], 2)", "T.gt({0}.sum(), 0)", "T.eq({0}.size, 0)"))
        return form.format(x.name)
    return f"T.gt({x.name}, {writer.choose((0, 1, -1))})"


def write(writer: Writer) -> Variable:
    """Write an ifelse with branches of one type and, in most cases, of equal shapes."""
    x = writer.choose_variable(types.REAL, (0, 1, 2))
    same = [e for e in writer.variables if e.dims == x.dims and e.dtype == x.dtype and e != x]
    y = writer.choose(same) if same and writer.decide(70) else elementwise.write_unary(writer)
    if y.dims != x.dims or y.dtype != x.dtype:
        dims = tuple(dim if dim in "abcd1" else "a" for dim in x.dims)
        y = x if dims != x.dims else writer.add_input(x.dtype, x.dims)
    other = writer.choose((y.name, y.name, f"{x.name} + 1" if x.dtype != "bool" else y.name))
    test = write_condition(writer)
    if writer.decide(30):
        text = f"ifelse({test}, [{x.name}, {y.name}], [{y.name}, {x.name}])"
        results = writer.add_statement(text)
        writer.add(f"{results}[1]", x.dtype, x.dims, x, y, exact=True)
        return writer.add(f"{results}[0]", x.dtype, x.dims, x, y, exact=True)
    pair = [x.name, other]
    if x.ndim and writer.decide(25):
        # One branch is a slice of the other, so their lengths may differ. The slice fails if its
        # step is an input with the value 0.
        pair[1] = f"{x.name}[{subtensors.write_slice(writer, x.dims[0])[0]}]"
        branch = writer.add(
            f"ifelse({test}, {pair[0]}, {pair[1]})", x.dtype, ("if" + pair[1], *x.dims[1:]), x
        )
        return branch
    writer.random.shuffle(pair)
    text = f"ifelse({test}, {pair[0]}, {pair[1]})"
    return writer.add(text, x.dtype, x.dims, x, y, exact=True)
