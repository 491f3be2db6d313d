"""C code of elementwise operations between a sparse matrix and a dense array."""

from __future__ import annotations

from collections.abc import Sequence

# C code that visits the stored elements of a sparse matrix. j is an element's row in CSR and its
# column in CSC; i is its column in CSR and its row in CSC; k is its position in the data.
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


def generate_loops(inputs: Sequence[str], out: str, operator: str, index: str, fail: str) -> str:
    """Return C code that computes the elements of a sparse result.

    The loops follow the strides of each operand.

    Args:
        inputs: the C names of the sparse operand's data, indices and indptr, and of the dense
            operand.
        out: the C name of the array of the result's data, which is contiguous.
        operator: the C operator between a sparse and a dense element, such as "*".
        index: the index into the dense operand: "i", "i, j" or "j, i".
        fail: C code to run after an exception is set.
    """
    data, indices, indptr, dense = inputs
    indices_of_dense = index.split(", ")
    return LOOPS.format(
        **{"data": data, "indices": indices, "indptr": indptr, "dense": dense, "out": out},
        **{"operator": operator, "index": index, "fail": fail},
        ndim=len(indices_of_dense),
        axis=indices_of_dense.index("i"),
    )


def generate_addition(inputs: Sequence[str], out: str, format: str) -> str:
    """Return C code that adds the stored elements of a sparse matrix to a dense matrix.

    The loops follow the strides of each array.

    Args:
        inputs: the C names of the sparse matrix's data, indices and indptr.
        out: the C name of the dense matrix.
        format: the format of the sparse matrix: "csc" or "csr".
    """
    data, indices, indptr = inputs
    row, col = {"csc": ("inner", "outer"), "csr": ("outer", "inner")}[format]
    return f"""
{{
    const npy_intp N = PyArray_DIMS({indptr})[0] - 1;

    for (npy_intp outer = 0; outer < N; ++outer) {{
        const npy_intp end = *(dtype_{indptr}*)PyArray_GETPTR1({indptr}, outer + 1);
        for (npy_intp k = *(dtype_{indptr}*)PyArray_GETPTR1({indptr}, outer); k < end; ++k) {{
            const npy_intp inner = *(dtype_{indices}*)PyArray_GETPTR1({indices}, k);
            dtype_{out}& sum = *(dtype_{out}*)PyArray_GETPTR2({out}, {row}, {col});
            sum = sum + *(dtype_{data}*)PyArray_GETPTR1({data}, k);
        }}
    }}
}}
"""
