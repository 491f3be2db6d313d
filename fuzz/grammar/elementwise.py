"""Write elementwise operations on all types: arithmetic, functions, comparisons, casts."""

from __future__ import annotations

from fuzz.grammar import types
from fuzz.grammar.writer import Variable, Writer

# Functions of one real variable.
FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cos", "sin", "tan"),
    *("arccos", "arcsin", "arctan", "cosh", "sinh", "tanh", "arccosh", "arcsinh", "arctanh"),
    *("erf", "erfc", "erfinv", "erfcinv", "gamma", "gammaln", "psi", "deg2rad", "rad2deg"),
    *("erfcx", "tri_gamma", "i0", "i1", "j0", "j1"),
    *("inv", "nnet.sigmoid", "nnet.softplus", "nnet.hard_sigmoid", "nnet.ultra_fast_sigmoid"),
)
# Functions of two arguments that are not negative: incomplete gamma functions, and chi2sf.
INCOMPLETE = ("gammainc", "gammaincc", "gammau", "gammal", "chi2sf")
OF_COMPLEX = ("exp", "sqrt", "cos", "sin", "tanh", "log", "inv", "sqr", "neg")
# Functions with jumps. Their operands must be exact: near a jump, rounding would decide the result.
STEPS = ("floor", "ceil", "trunc", "round", "sgn", "iround")
COMPARISONS = ("eq", "neq", "lt", "le", "gt", "ge")
BITWISE = ("and_", "or_", "xor")
ARITHMETIC = ("+", "-", "*")


def compute_broadcast_dims(*variables: Variable) -> tuple[str, ...]:
    """Return the dimensions of an elementwise result of variables that broadcast."""
    longest = max(variable.ndim for variable in variables)
    dims = []
    for axis in range(longest):
        axis_dims = {
            variable.dims[axis - longest]
            for variable in variables
            if variable.ndim >= longest - axis
        }
        lengths = sorted(axis_dims - {"1"})
        dims.append(lengths[0] if lengths else "1")
    return tuple(dims)


def write(writer: Writer) -> Variable:
    """Write an elementwise operation."""
    return writer.choose(
        (
            write_arithmetic,
            write_arithmetic,
            write_unary,
            write_binary,
            write_cast,
            write_switch,
            write_power,
            write_discrete,
        )
    )(writer)


def write_arithmetic(writer: Writer) -> Variable:
    """Write a sum, difference or product of two variables, or of a variable and a constant."""
    x = writer.choose_variable()
    sign = writer.choose(ARITHMETIC)
    if writer.decide(25):
        number = writer.choose((0, 1, 2, 3, -1, 0.5, -2.0, 100, 127, 128, 1000, 2**31, 2**40))
        dtype = x.dtype if isinstance(number, int) else types.upcast(x.dtype, "float32")
        if isinstance(number, int) and not -128 <= number < 128:
            dtype = types.upcast(dtype, "int16" if number < 2**15 else "int64")
        pair = [x.name, str(number)]
        writer.random.shuffle(pair)
        return writer.add(f" {sign} ".join(pair), dtype, x.dims, x, exact=abs(number) < 4)
    y = writer.choose_broadcastable(x)
    dtype = types.upcast(x.dtype, y.dtype)
    return writer.add(
        f"{x.name} {sign} {y.name}", dtype, compute_broadcast_dims(x, y), x, y, exact=True
    )


def write_unary(writer: Writer) -> Variable:
    """Write a function of one variable."""
    kind = writer.choose(("function", "function", "function", "step", "sign", "test", "complex"))
    if kind == "function":
        x = writer.choose_variable(types.REAL)
        name = writer.choose(FUNCTIONS)
        return writer.add(f"T.{name}({x.name})", types.compute_float_type(x.dtype), x.dims, x)
    if kind == "step":
        x = writer.choose_variable(types.REAL, where=lambda variable: variable.exact)
        if not x.exact:
            return write_arithmetic(writer)
        name = writer.choose(STEPS)
        if name == "iround":
            name = "round"
            mode = writer.choose(("half_to_even", "half_away_from_zero"))
            return writer.add(f"T.round({x.name}, mode={mode!r})", x.dtype, x.dims, x, exact=True)
        return writer.add(f"T.{name}({x.name})", x.dtype, x.dims, x, exact=True)
    if kind == "test":
        x = writer.choose_variable(types.REAL)
        return writer.add(f"T.{writer.choose(('isnan', 'isinf'))}({x.name})", "bool", x.dims, x)
    if kind == "complex":
        x = writer.choose_variable(types.COMPLEX)
        real = {"complex64": "float32", "complex128": "float64"}[x.dtype]
        name = writer.choose((*OF_COMPLEX, "real", "imag", "conj", "abs_", "angle"))
        dtype = real if name in ("real", "imag", "abs_", "angle") else x.dtype
        return writer.add(f"T.{name}({x.name})", dtype, x.dims, x)
    x = writer.choose_variable(types.REAL)
    name = writer.choose(("neg", "abs_", "sqr", "-"))
    text = f"-{x.name}" if name == "-" else f"T.{name}({x.name})"
    return writer.add(text, x.dtype, x.dims, x, exact=True)


def write_binary(writer: Writer) -> Variable:
    """Write a function of two variables."""
    x = writer.choose_variable(types.REAL)
    y = writer.choose_broadcastable(x, types.REAL)
    name = writer.choose(
        ("maximum", "minimum", "/", "arctan2", "//", "%", "complex", "outer", "incomplete")
    )
    dims, dtype = compute_broadcast_dims(x, y), types.upcast(x.dtype, y.dtype)
    if name in ("maximum", "minimum"):
        return writer.add(f"T.{name}({x.name}, {y.name})", dtype, dims, x, y, exact=True)
    if name in ("//", "%"):
        # These functions have jumps, so both operands must be exact.
        divisor = writer.choose((y.name, f"T.maximum({y.name}, 1)", "2", "3", "-2"))
        if not (x.exact and y.exact):
            return write_arithmetic(writer)
        dims = dims if y.name in divisor else x.dims
        return writer.add(f"{x.name} {name} {divisor}", dtype, dims, x, y)
    if name == "complex":
        if dtype not in ("float32", "float64") or x.dtype != y.dtype:
            return write_arithmetic(writer)
        complex_dtype = {"float32": "complex64", "float64": "complex128"}[dtype]
        return writer.add(f"T.complex({x.name}, {y.name})", complex_dtype, dims, x, y)
    if name == "incomplete":
        # Limit the arguments, because the functions do not converge for very large numbers.
        first, second = (f"T.minimum(abs({variable.name}), 100)" for variable in (x, y))
        text = f"T.{writer.choose(INCOMPLETE)}(0.5 + {first}, {second})"
        return writer.add(text, types.compute_float_type(dtype), dims, x, y)
    if name == "arctan2":
        dtype = types.compute_float_type(dtype)
        return writer.add(f"T.arctan2({x.name}, {y.name})", dtype, dims, x, y)
    quotient_dtype = "float64" if dtype in types.DISCRETE else dtype
    divisor = writer.choose((y.name, f"(1 + T.sqr({y.name}))", "4", "2.0"))
    dims = dims if y.name in divisor else x.dims
    return writer.add(f"{x.name} / {divisor}", quotient_dtype, dims, x, y)


def write_cast(writer: Writer) -> Variable:
    """Write a conversion to another type."""
    x = writer.choose_variable(types.REAL)
    if x.discrete:
        dtype = writer.choose_dtype(types.REAL)
    elif x.exact and not writer.extreme:
        dtype = writer.choose(("float32", "float64", "int64", "int32"))
    else:
        dtype = writer.choose(types.FLOATS)
    exact = dtype != "float16"
    return writer.add(f"T.cast({x.name}, {dtype!r})", dtype, x.dims, x, exact=exact)


def write_condition(writer: Writer) -> Variable:
    """Write a comparison of an exact variable with an exact variable or a constant."""
    x = writer.choose_variable(types.REAL, where=lambda variable: variable.exact)
    y = writer.choose_broadcastable(x, types.REAL)
    if not (x.exact and y.exact):
        x = writer.add_input(writer.choose_dtype(types.REAL[:-3]), writer.choose_dims(1))
        y = x
    operand = y.name if writer.decide(70) else writer.choose(("0", "1", "-1", "2", "100"))
    dims = compute_broadcast_dims(x, y) if operand == y.name else x.dims
    return writer.add(f"T.{writer.choose(COMPARISONS)}({x.name}, {operand})", "bool", dims, x)


def write_switch(writer: Writer) -> Variable:
    """Write T.switch, which selects elements of two variables by a comparison.

    In some cases, write only the comparison, or T.clip.
    """
    if writer.decide(15):
        x = writer.choose_variable(types.REAL, where=lambda variable: variable.exact)
        low, high = writer.choose((("-1", "1"), ("0", "2"), ("2", "-2"), ("-3", "1000")))
        return writer.add(f"T.clip({x.name}, {low}, {high})", x.dtype, x.dims, x, exact=True)
    test = write_condition(writer)
    if writer.decide(40):
        return test
    x = writer.choose_broadcastable(test, types.REAL)
    y = writer.choose_broadcastable(test, types.REAL)
    # Both variables broadcast with the condition, but perhaps not with each other.
    dims = compute_broadcast_dims(test, x, y)
    text = f"T.switch({test.name}, {x.name}, {y.name})"
    return writer.add(text, types.upcast(x.dtype, y.dtype), dims, test, x, y, exact=True)


def write_power(writer: Writer) -> Variable:
    """Write a power with a constant exponent."""
    x = writer.choose_variable(types.REAL)
    power = writer.choose((0, 1, 2, 2, 3, 3, 4, 5, -1, -2, 0.5, -0.5, 1.5))
    if power in (0, 1, 2, 3, 4, 5):
        return writer.add(f"{x.name} ** {power}", types.upcast(x.dtype, "int8"), x.dims, x)
    if x.discrete:
        return writer.add(f"T.cast({x.name}, 'float64') ** {power}", "float64", x.dims, x)
    return writer.add(f"{x.name} ** {power}", x.dtype, x.dims, x)


def write_discrete(writer: Writer) -> Variable:
    """Write a bitwise operation, or compare an expression with the same expression in a wide type.

    The comparison finds optimizations that compute in a wrong type.
    """
    x = writer.choose_variable(types.DISCRETE)
    if writer.decide(30):
        return writer.add(f"~{x.name}", x.dtype, x.dims, x)
    if writer.decide(50):
        y = writer.choose_broadcastable(x, types.DISCRETE)
        dtype = types.upcast(x.dtype, y.dtype)
        if dtype not in types.DISCRETE:
            # Bitwise operations need integers.
            return write_arithmetic(writer)
        text = f"T.{writer.choose(BITWISE)}({x.name}, {y.name})"
        return writer.add(text, dtype, compute_broadcast_dims(x, y), x, y)
    wide = writer.choose(("int64", "int64", "int32", "uint64", "float64"))
    w = f"T.cast({x.name}, {wide!r})"
    form = writer.choose(
        (
            "{0} * {0}",
            "T.sqr({0})",
            "~{0}",
            "abs({0})",
            "{0} + {0}",
            "-{0}",
            "{0} // 2",
            "{0} * 3",
            "{0} - 1",
            "{0} ** 2",
        )
    )
    if wide == "float64" and "~" in form:
        form = "{0} * {0}"
    one, other = form.format(x.name), form.format(w)
    name = writer.choose(("eq", "lt", "ge", "maximum", "minimum", "neq"))
    dtype = "bool" if name in COMPARISONS else wide
    pair = [one, other]
    writer.random.shuffle(pair)
    return writer.add(f"T.{name}({pair[0]}, {pair[1]})", dtype, x.dims, x)


def write_broadcast(writer: Writer) -> Variable:
    """Write a dimshuffle, or an operation that broadcasts a variable."""
    x = writer.choose_variable(types.REAL, (1, 2, 3))
    if writer.decide(40):
        order: list[object] = list(range(x.ndim))
        writer.random.shuffle(order)
        pattern = [axis for axis in order if x.dims[int(str(axis))] != "1" or writer.decide(50)]
        for _ in range(writer.choose((0, 1, 1, 2))):
            pattern.insert(writer.random.randrange(len(pattern) + 1), "x")
        if len(pattern) > 4:
            return write_arithmetic(writer)
        dims = tuple("1" if axis == "x" else x.dims[int(str(axis))] for axis in pattern)
        text = f"{x.name}.dimshuffle({', '.join(repr(axis) for axis in pattern)})"
        return writer.add(text, x.dtype, dims, x, exact=True)
    if writer.decide(30):
        axis = writer.random.randrange(x.ndim)
        y_dims = ["1" if position == axis else dim for position, dim in enumerate(x.dims)]
        y = writer.add_input(writer.choose_dtype(types.REAL), tuple(y_dims))
    else:
        y = writer.choose_broadcastable(x, types.REAL)
    sign = writer.choose((*ARITHMETIC, "/"))
    dtype = types.upcast(x.dtype, y.dtype)
    if sign == "/":
        dtype = "float64" if dtype in types.DISCRETE else dtype
    exact = sign != "/"
    return writer.add(
        f"{x.name} {sign} {y.name}", dtype, compute_broadcast_dims(x, y), x, y, exact=exact
    )
