"""Write operations on sparse matrices.

The operands are dense variables, which an operation converts to sparse matrices. A sparse result is
converted to a dense variable.
"""

from __future__ import annotations

from fuzz.grammar.products import choose_operand
from fuzz.grammar.writer import Variable, Writer

DTYPES = ("float64", "float64", "float32", "int64", "int32", "int8", "complex128")


def write(writer: Writer) -> Variable:
    """Write an operation on sparse matrices."""
    dtype = writer.choose(DTYPES)
    a, b, c = (writer.choose("abc") for _ in range(3))
    x = choose_operand(writer, dtype, (a, b))
    s = f"sparse.{writer.choose(('csr', 'csc'))}_from_dense({x.name})"
    y = choose_operand(writer, dtype, (b, c))
    z = choose_operand(writer, dtype, (a, b))
    w = choose_operand(writer, dtype, (b,))
    t = f"sparse.{writer.choose(('csr', 'csc'))}_from_dense({z.name})"
    u = f"sparse.{writer.choose(('csr', 'csc'))}_from_dense({y.name})"
    to_dense = "sparse.dense_from_sparse({0})"
    row = choose_operand(writer, dtype, (a,))
    forms = [
        (f"sparse.structured_dot({s}, {y.name})", (a, c)),
        (f"sparse.dot({s}, {y.name})", (a, c)),
        (f"sparse.dot({x.name}, {u})", (a, c)),
        (to_dense.format(f"sparse.true_dot({s}, {u})"), (a, c)),
        (to_dense.format(f"sparse.add({s}, {t})"), (a, b)),
        (f"sparse.add({s}, {z.name})", (a, b)),
        (to_dense.format(f"sparse.mul({s}, {t})"), (a, b)),
        (to_dense.format(f"sparse.mul({s}, {z.name})"), (a, b)),
        (to_dense.format(f"sparse.sub({s}, {t})"), (a, b)),
        (to_dense.format(f"sparse.neg({s})"), (a, b)),
        (to_dense.format(f"{s}.T"), (b, a)),
        (to_dense.format(f"sparse.mul_s_v({s}, {w.name})"), (a, b)),
        (to_dense.format(f"sparse.structured_add_s_v({s}, {w.name})"), (a, b)),
        (to_dense.format(f"sparse.col_scale({s}, {w.name})"), (a, b)),
        (to_dense.format(f"sparse.row_scale({s}, {row.name})"), (a, b)),
        (f"sparse.sp_sum({s}, axis={writer.choose((0, 1))})", ("?",)),
        (f"sparse.sp_sum({s})", ()),
        (
            to_dense.format(f"{s}[{writer.choose(('0:2, 0:1', '1:, :2', ':, :', '0:1, :'))}]"),
            ("?", "?"),
        ),
        (to_dense.format(f"sparse.structured_minimum({s}, {s}.toarray().max())"), (a, b)),
        (to_dense.format(f"sparse.structured_sigmoid({s})"), (a, b)),
        (to_dense.format(f"sparse.remove0({s})"), (a, b)),
        (f"sparse.sampling_dot({x.name}, {y.name}.T, {t}).sum()", ()),
        (
            f"T.grad(sparse.sp_sum(sparse.structured_dot({s}, {y.name}) ** 2)"
            f" if False else (sparse.structured_dot({s}, {y.name}) ** 2).sum(), {y.name})",
            (b, c),
        ),
        (f"{s}.nnz", ()),
        (f"T.grad((sparse.dot({s}, {y.name}) ** 2).sum(), {x.name})", (a, b)),
        (f"sparse.csm_data({s}) * 2", ("?",)),
        (to_dense.format(f"sparse.hstack([{s}, {t}], format='csr')"), (a, f"2{b}")),
        (to_dense.format(f"sparse.vstack([{s}, {t}], format='csc')"), (f"2{a}", b)),
        (to_dense.format(f"sparse.cast({s}, 'float64')"), (a, b)),
        (f"sparse.diag({s})", ("?",)),
        (f"sparse.usmm(2, {s}, {y.name}, T.dot({x.name}, {y.name}))", (a, c)),
    ]
    text, dims = writer.choose(forms)
    result_dtype = dtype if "cast" not in text else "float64"
    result_dtype = "int32" if "nnz" in text else result_dtype
    exact = "sigmoid" not in text
    operands = [variable for variable in (x, y, z, w, row) if variable.name in text]
    # Give each unknown length a unique string, because equal strings mean equal lengths.
    dims = tuple(f"?{text}{axis}" if dim == "?" else dim for axis, dim in enumerate(dims))
    return writer.add(text, result_dtype, dims, *operands, exact=exact)
