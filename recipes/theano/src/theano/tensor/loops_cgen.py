"""C code of elementwise loops and reductions that g++ vectorizes.

The loops are functions of C type theano_loops (theano_loops.h).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

# Whether an array is broadcast along each of its dimensions.
Pattern = Sequence[bool]

# Maps a function that theano_functions.h replaces to the name of the C library's own function.
FUNCTIONS = {name: f"libm_{name}" for name in ("exp", "log", "log1p", "pow", "tanh")}
# The functions that compile to an instruction.
INSTRUCTIONS = {"ceil", "fabs", "floor", "rint", "sqrt", "trunc"}
# The innermost strides. With "next to", elements are contiguous, or the array is broadcast.
Strides = Literal["any", "next to", "both"]
# For a task of more statements, g++ spends a third of its time on a vectorized epilogue of the
# loop. A flag with a vector length that does not exist disables the epilogue.
LONG_TASK = 30
NO_LENGTH = " simdlen(256)"
# The number of rows that a reduction accumulates at once.
ROWS = 4
CALLED = re.compile(r"\b[A-Za-z_]\w*(?=\()")


def type_num(dtype: str) -> str:
    """Return the name of NumPy's type number for a C type."""
    return dtype.upper().replace("THEANO_COMPLEX", "NPY_COMPLEX")


def pattern_strings(broadcast: Sequence[Pattern]) -> tuple[str, ...]:
    """Return patterns as strings with a 0 or a 1 for each dimension."""
    return tuple("".join("01"[x] for x in pattern) for pattern in broadcast)


def choose_functions(task: str) -> str:
    """Replace Theano's functions by the C library's in a task that g++ cannot vectorize.

    A call of any other function prevents vectorization. For single elements, the C library's
    functions are faster than Theano's.
    """
    if (FUNCTIONS.keys() | INSTRUCTIONS).issuperset(CALLED.findall(task)):
        return task
    return CALLED.sub(lambda name: FUNCTIONS.get(name[0], name[0]), task)


def make_loops(
    names: Sequence[str],
    dtypes: Sequence[str],
    broadcast: Sequence[Pattern],
    task: str,
    strides: Strides = "both",
) -> str:
    """Generate the body of a function of C type theano_loops.

    g++ vectorizes a loop whose strides are constants. That is the case for rows of contiguous
    arrays and of slices of them, and for broadcast arrays.

    Args:
        names: the C names of the arrays.
        dtypes: the C type of each array's elements.
        broadcast: each array's pattern.
        task: C code that computes one element; "<name>_i" is the element of an array.
        strides: the innermost strides that the loops support. Except for "any", no element may
            depend on another element, and the task cannot fail.
    """
    n, nd = len(names), len(broadcast[0])
    rows, next_to, contiguous, strided = "", [], "", ""
    for i, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
        if not nd:
            contiguous += f"{dtype} &{name}_i = *({dtype} *)data[{i}];\n"
            continue
        rows += f"{dtype} *{name}_row = ({dtype} *)(data[{i}] + row * strides[{i}]);\n"
        step = 0 if broadcast[i][-1] else 1
        next_to.append(f"strides[{n + i}] == {step} * (npy_intp)sizeof({dtype})")
        contiguous += f"{dtype} &{name}_i = {name}_row[{step} * i];\n"
        strided += (
            f"{dtype} &{name}_i = *({dtype} *)((char *){name}_row + i * strides[{n} + {i}]);\n"
        )
    if not nd:
        return contiguous + task + "return 0;\n"
    constants = ""
    loop = f"""
                for (npy_intp i = 0; i < sizes[1]; i++) {{
                    {strided}
                    {task}
                }}
    """
    vectorized = f"""
                #pragma omp simd{NO_LENGTH if task.count(";") > LONG_TASK else ""}
                for (npy_intp i = 0; i < sizes[1]; i++) {{
                    {contiguous}
                    {task}
                }}
    """
    if strides == "both":
        constants = f"const bool next_to = {' && '.join(next_to)};"
        loop = f"if (next_to) {{{vectorized}}} else {{{loop}}}"
    elif strides == "next to":
        loop = vectorized
    return f"""
            {constants}
            for (npy_intp row = 0; row < sizes[0]; row++) {{
                {rows}
                {loop}
            }}
            return 0;
    """


def make_reduction(dtype: str, acc_dtype: str, task: str) -> str:
    """Generate the body of a function of C type theano_loops for a reduction.

    Args:
        dtype: the C type of the array's elements.
        acc_dtype: the C type of the accumulator.
        task: C code that adds an element "x_i" to the accumulator "acc_i".
    """

    def strided(acc: str) -> str:
        return f"""
                for (npy_intp i = 0; i < sizes[1]; i++) {{
                    {dtype} &x_i = *({dtype} *)(x + i * strides[2]);
                    {acc}
                    {task}
                }}
    """

    along = strided("")
    across = strided(f"{acc_dtype} &acc_i = *({acc_dtype} *)(acc + i * strides[3]);")
    # Each row is accumulated in order. Several rows at once hide the latency of an addition.
    several = f"""
                    {acc_dtype} accs[{ROWS}];
                    for (int r = 0; r < {ROWS}; r++)
                        accs[r] = *({acc_dtype} *)(acc + r * strides[1]);
                    for (npy_intp i = 0; i < sizes[1]; i++) {{
                        #pragma GCC unroll {ROWS}
                        for (int r = 0; r < {ROWS}; r++) {{
                            {dtype} &x_i = *({dtype} *)(x + r * strides[0] + i * strides[2]);
                            {acc_dtype} &acc_i = accs[r];
                            {task}
                        }}
                    }}
                    for (int r = 0; r < {ROWS}; r++)
                        *({acc_dtype} *)(acc + r * strides[1]) = accs[r];
                    row += {ROWS - 1};
    """
    return f"""
            const bool next_to = strides[2] == (npy_intp)sizeof({dtype}) &&
                                 strides[3] == (npy_intp)sizeof({acc_dtype});
            for (npy_intp row = 0; row < sizes[0]; row++) {{
                char *x = data[0] + row * strides[0];
                char *acc = data[1] + row * strides[1];
                if (strides[3] == 0 && strides[1] && sizes[0] - row >= {ROWS}) {{
                    {several}
                }} else if (strides[3] == 0) {{
                    {acc_dtype} acc_i = *({acc_dtype} *)acc;
                    {along}
                    *({acc_dtype} *)acc = acc_i;
                }} else if (next_to) {{
                    #pragma omp simd
                    for (npy_intp i = 0; i < sizes[1]; i++) {{
                        {dtype} &x_i = (({dtype} *)x)[i];
                        {acc_dtype} &acc_i = (({acc_dtype} *)acc)[i];
                        {task}
                    }}
                }} else {{{across}}}
            }}
            return 0;
    """


def make_vectorized_loops(  # noqa: PLR0913, PLR0917 (Elemwise's own parts, in one call)
    names: Sequence[str],
    dtypes: Sequence[str],
    broadcast: Sequence[Pattern],
    n_inputs: int,
    like: int,
    task: str,
    fortran: str,
    sub: Mapping[str, str],
) -> tuple[str, str, str, str]:
    """Generate the C code of an Elemwise with vectorized loops.

    Args:
        names: the C names of the arrays: inputs, then outputs to allocate.
        dtypes: the C type of each array's elements.
        broadcast: each array's pattern.
        n_inputs: the number of inputs.
        like: the number of the array whose order in memory the loops follow.
        task: C code that computes one element; "<name>_i" is the element of an array.
        fortran: a C condition: whether outputs are in Fortran order.
        sub: a mapping with the C code for "fail".

    Returns:
        C code of the declarations, checks, allocations and loops.
    """
    n, nd = len(names), len(broadcast[0])
    strings = ", ".join(f'"{pattern}"' for pattern in pattern_strings(broadcast))
    decl = f"""
        PyArrayObject *arrays[{n}];
        npy_intp dims[{nd}];
        static const char *const broadcast[{n}] = {{{strings}}};
    """
    checks = "".join(f"arrays[{i}] = {name};\n" for i, name in enumerate(names[:n_inputs]))
    checks += f"""
        if (theano_dims({nd}, dims, {n_inputs}, arrays, broadcast)) {sub["fail"]}
    """
    alloc = ""
    for i in range(n_inputs, n):
        name = names[i]
        alloc += f"""
        {name} = theano_output({name}, {nd}, dims, {type_num(dtypes[i])}, {fortran});
        if (!{name}) {sub["fail"]}
        arrays[{i}] = {name};
        """
    loops = make_loops(names, dtypes, broadcast, task)
    loop = f"""
        theano_elemwise<theano_loops>({nd}, dims, {n}, arrays, broadcast, {like},
                        [](char *const *data, const npy_intp *sizes,
                           const npy_intp *strides) -> int {{{loops}}});
    """
    return decl, checks, alloc, loop
