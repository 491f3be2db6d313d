"""C code of loops over elements, written once, which g++ vectorises.

The loops are functions of C type theano_loops, see theano_loops.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

# Along which dimensions an array is broadcast.
Pattern = Sequence[bool]

# What theano_functions.h has in place of the C library's functions, and those by another name.
FUNCTIONS = {name: f"libm_{name}" for name in ("exp", "log", "log1p", "pow", "tanh")}
# The functions that are instructions of processors.
INSTRUCTIONS = {"ceil", "fabs", "floor", "rint", "sqrt", "trunc"}
# Whether elements are "next to" each other, or the same where an array is broadcast.
Strides = Literal["any", "next to", "both"]
# Of a task of more statements, g++ takes a third of its time to vectorise what is left behind the
# last whole vector. It does not if it is asked for vectors of a length that there is none of.
LONG_TASK = 30
NO_LENGTH = " simdlen(256)"
# So many rows are accumulated at once.
ROWS = 4
CALLED = re.compile(r"\b[A-Za-z_]\w*(?=\()")


def type_num(dtype: str) -> str:
    """Return NumPy's name of the number of a C type."""
    return dtype.upper().replace("THEANO_COMPLEX", "NPY_COMPLEX")


def pattern_strings(broadcast: Sequence[Pattern]) -> tuple[str, ...]:
    """Return patterns as strings, of a 0 or a 1 for each dimension."""
    return tuple("".join("01"[x] for x in pattern) for pattern in broadcast)


def with_functions(task: str) -> str:
    """Return an element's C code with the C library's functions, where others are called too.

    Others keep g++ from computing several elements at once; one by one, the library's take less
    time than ours.
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
    """Produce the body of a function of C type theano_loops.

    g++ vectorises a loop with strides that it knows: through rows of arrays in C order, or slices
    of them, and what is broadcast along.

    Args:
        names: the arrays.
        dtypes: the C type of the elements of each.
        broadcast: along which dimensions each is broadcast.
        task: computes an element, "<name>_i" of each array.
        strides: the innermost ones that there can be. For others than "any", no element depends on
            another, nor on an error.
    """
    n, nd = len(names), len(broadcast[0])
    rows, next_to, known, strided = "", [], "", ""
    for i, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
        if not nd:
            known += f"{dtype} &{name}_i = *({dtype} *)data[{i}];\n"
            continue
        rows += f"{dtype} *{name}_row = ({dtype} *)(data[{i}] + row * strides[{i}]);\n"
        step = 0 if broadcast[i][-1] else 1
        next_to.append(f"strides[{n + i}] == {step} * (npy_intp)sizeof({dtype})")
        known += f"{dtype} &{name}_i = {name}_row[{step} * i];\n"
        strided += (
            f"{dtype} &{name}_i = *({dtype} *)((char *){name}_row + i * strides[{n} + {i}]);\n"
        )
    if not nd:
        return known + task + "return 0;\n"
    constants = ""
    loop = f"""
                for (npy_intp i = 0; i < sizes[1]; i++) {{
                    {strided}
                    {task}
                }}
    """
    vectorised = f"""
                #pragma omp simd{NO_LENGTH if task.count(";") > LONG_TASK else ""}
                for (npy_intp i = 0; i < sizes[1]; i++) {{
                    {known}
                    {task}
                }}
    """
    if strides == "both":
        constants = f"const bool next_to = {' && '.join(next_to)};"
        loop = f"if (next_to) {{{vectorised}}} else {{{loop}}}"
    elif strides == "next to":
        loop = vectorised
    return f"""
            {constants}
            for (npy_intp row = 0; row < sizes[0]; row++) {{
                {rows}
                {loop}
            }}
            return 0;
    """


def make_reduction(dtype: str, acc_dtype: str, task: str) -> str:
    """Produce the body of a function of C type theano_loops that accumulates.

    Args:
        dtype: the C type of the elements of the array.
        acc_dtype: that of what is accumulated.
        task: adds an element, "x_i", to what is accumulated, "acc_i".
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
    # Of each row in its order; several at once, as each addition waits for the row's last one.
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


def make_vectorised_loops(  # noqa: PLR0913, PLR0917 (Elemwise's own parts, in one call)
    names: Sequence[str],
    dtypes: Sequence[str],
    broadcast: Sequence[Pattern],
    n_inputs: int,
    like: int,
    task: str,
    fortran: str,
    sub: Mapping[str, str],
) -> tuple[str, str, str, str]:
    """Produce the code of loops that may compute several elements at once.

    Args:
        names: the arrays: inputs, then outputs, which are to be allocated.
        dtypes: the C type of the elements of each.
        broadcast: along which dimensions each is broadcast.
        n_inputs: how many are inputs.
        like: the number of the array whose order in memory the loops follow.
        task: computes an element, "<name>_i" of each array.
        fortran: a C condition: whether outputs are in Fortran order.
        sub: with the code of "fail".

    Returns:
        declarations, checks, allocations, loops.
    """
    n, nd = len(names), len(broadcast[0])
    strings = ", ".join(f'"{each}"' for each in pattern_strings(broadcast))
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
