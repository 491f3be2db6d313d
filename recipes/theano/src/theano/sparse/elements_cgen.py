"""C code over the elements of a sparse matrix, each with the element of a dense one beside it."""

from __future__ import annotations

from collections.abc import Sequence

# i and j: the place within a row (of csr) or column, and the number of that.
LOOPS = """
{{
    const npy_intp N = PyArray_DIMS({indptr})[0] - 1;
    dtype_{out} * const __restrict__ zout = (dtype_{out}*)PyArray_DATA({out});

    for (npy_intp j = 0; j < N; ++j) {{
        const npy_int32 end = *(npy_int32*)PyArray_GETPTR1({indptr}, j + 1);
        for (npy_int32 k = *(npy_int32*)PyArray_GETPTR1({indptr}, j); k < end; ++k) {{
            const npy_int32 i = *(npy_int32*)PyArray_GETPTR1({indices}, k);
            if (i >= PyArray_DIMS({dense})[{axis}]) {{
                PyErr_SetString(PyExc_ValueError, "the dense operand has too few elements");
                {fail}
            }}
            zout[k] = *(dtype_{data}*)PyArray_GETPTR1({data}, k)
                {operator} *(dtype_{dense}*)PyArray_GETPTR{ndim}({dense}, {index});
        }}
    }}
}}
"""


def loops(inputs: Sequence[str], out: str, operator: str, index: str, fail: str) -> str:
    """Return the loops, by the strides of each operand.

    Args:
        inputs: the names of data, indices, their starts, and the dense operand.
        out: the name of the result's data, which lie in a row.
        operator: between an element and the dense one.
        index: of the dense one: "i", "i, j" or "j, i".
        fail: the code for an error.
    """
    data, indices, indptr, dense = inputs
    places = index.split(", ")
    return LOOPS.format(
        **{"data": data, "indices": indices, "indptr": indptr, "dense": dense, "out": out},
        **{"operator": operator, "index": index, "fail": fail},
        ndim=len(places),
        axis=places.index("i"),
    )
