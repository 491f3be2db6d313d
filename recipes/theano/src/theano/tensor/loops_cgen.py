"""Generation of C code of elementwise loops and reductions that g++ vectorizes.

The loops are C functions of the type theano_loops (theano_loops.h).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

# A broadcastable pattern: for each dimension, whether the array is broadcast along it.
Pattern = Sequence[bool]

# Maps a function that theano_functions.h redefines to the name of the C library's function.
FUNCTIONS = {name: f"libm_{name}" for name in ("exp", "log", "log1p", "pow", "tanh")}
# The functions that g++ compiles to an instruction, so they do not prevent vectorization.
INSTRUCTIONS = {"ceil", "fabs", "floor", "rint", "sqrt", "trunc"}
# The innermost strides that loops support. "any": all strides. "next to": the elements of each
# array are contiguous, or the array is broadcast. "both": a loop for each of these cases.
Strides = Literal["any", "next to", "both"]
# A task is C code that computes one element. For a task with more statements than LONG_TASK, g++
# spends a third of its time on a vectorized epilogue of the loop. A simdlen that the processor does
# not have disables the epilogue.
LONG_TASK = 30
NO_LENGTH = " simdlen(256)"
# The number of rows that a reduction accumulates at the same time.
ROWS = 4
# Matches the names of called functions.
CALLED = re.compile(r"\b[A-Za-z_]\w*(?=\()")


def get_type_num(dtype: str) -> str:
    """Return the C name of NumPy's type number for a C type: NPY_FLOAT32 for npy_float32."""
    return dtype.upper().replace("THEANO_COMPLEX", "NPY_COMPLEX")


def format_patterns(broadcast: Sequence[Pattern]) -> tuple[str, ...]:
    """Return patterns as strings, with a 1 for each dimension that is broadcast, otherwise a 0."""
    return tuple("".join("01"[x] for x in pattern) for pattern in broadcast)


def choose_functions(task: str) -> str:
    """Let a task call the C library's functions instead of Theano's if g++ cannot vectorize it.

    A call of a function that is neither in FUNCTIONS nor in INSTRUCTIONS prevents vectorization.
    For single elements, the C library's functions are faster than Theano's.
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
    """Generate the body of a C function of type theano_loops.

    g++ vectorizes a loop only if its strides are constants. The innermost strides are constants for
    contiguous arrays, for their slices along other dimensions, and for broadcast arrays.

    Args:
        names: the C names of the arrays.
        dtypes: the C type of each array's elements.
        broadcast: each array's pattern.
        task: C code that computes one element; "<name>_i" is the element of the array <name>.
        strides: the innermost strides that the loops support. Unless it is "any", no element may
            depend on another element, and the task must not fail.
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
    """Generate the body of a C function of type theano_loops for a reduction.

    Args:
        dtype: the C type of the array's elements.
        acc_dtype: the C type of the accumulator.
        task: C code that reduces the element "x_i" into the accumulator "acc_i".
    """

    def make_strided_loop(acc: str) -> str:
        return f"""
                for (npy_intp i = 0; i < sizes[1]; i++) {{
                    {dtype} &x_i = *({dtype} *)(x + i * strides[2]);
                    {acc}
                    {task}
                }}
    """

    # The innermost loop runs along a reduced dimension, or across it along another dimension.
    along = make_strided_loop("")
    across = make_strided_loop(f"{acc_dtype} &acc_i = *({acc_dtype} *)(acc + i * strides[3]);")
    # Accumulate several rows at the same time to hide the latency of an addition. The elements of
    # each row are accumulated in order.
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


def make_vectorized_loops(  # noqa: PLR0913, PLR0917 (Elemwise has these parts)
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
        names: the C names of the arrays: first the inputs, then the outputs that must be allocated.
        dtypes: the C type of each array's elements.
        broadcast: each array's pattern.
        n_inputs: the number of inputs.
        like: the number of the array whose order in memory the loops follow.
        task: C code that computes one element; "<name>_i" is the element of the array <name>.
        fortran: a C expression: whether outputs are allocated in Fortran order.
        sub: maps "fail" to the C code that runs after an exception was set.

    Returns:
        C code of the declarations, checks, allocations and loops.
    """
    n, nd = len(names), len(broadcast[0])
    strings = ", ".join(f'"{pattern}"' for pattern in format_patterns(broadcast))
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
        {name} = theano_output({name}, {nd}, dims, {get_type_num(dtypes[i])}, {fortran});
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
