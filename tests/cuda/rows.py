"""Take rows of arrays with the kernel of GpuTakeRows, compiled as a C++ function for the CPU.

The program prints JSON: for each view, dtype and list of indices, the rows that the kernel takes
and the rows that NumPy takes. If an index is out of range, "beyond" replaces the rows.
"""

import ctypes
import itertools
import json

import compile as stubs
import kernels_on_the_cpu
import numpy as np
import theano.tensor as T
from theano.gpuarray.take_rows import GpuTakeRows
from theano.gpuarray.type import GpuArrayType

DTYPES = ("bool", "int16", "float32", "float64")
# Functions that return a view of an array with three dimensions. Rows are elements of the first
# dimension of the view.
VIEWS = {
    "in order": lambda array: array,
    "backwards with gaps": lambda array: array[::-2, ::-1],
    "transposed": lambda array: array.T,
    "matrix": lambda array: array[:, :, 1],
    "vector": lambda array: array[:, 2, 1],
}
INDICES = ([0, 1], [1, -1, 1], [0, 9], [-9])


def take_with_kernel(array, indices):
    """Take rows with the kernel; return nested lists, or "beyond"."""
    x = GpuArrayType(str(array.dtype), [False] * array.ndim)()
    node = GpuTakeRows()(x, T.lvector()).owner
    (kernel,) = node.op.gpu_kernels(node, "node")
    out = np.zeros((len(indices), *array.shape[1:]), array.dtype)
    numbers = [out.size, *itertools.chain(*zip(array.shape, array.strides, strict=True))]
    memory = [
        argument
        for operand in (out, array, np.array(indices, "int64"))
        for argument in (ctypes.c_void_p(operand.ctypes.data), ctypes.c_size_t(0))
    ]
    error = ctypes.c_int(0)
    take = kernels_on_the_cpu.load_function(kernel)
    take(*map(ctypes.c_ssize_t, numbers), *memory, ctypes.byref(error))
    return "beyond" if error.value else out.tolist()


def take_with_numpy(array, indices):
    """Take rows with NumPy; return nested lists, or "beyond"."""
    try:
        return array[indices].tolist()
    except IndexError:
        return "beyond"


if __name__ == "__main__":
    stubs.start()
    results = {}
    for (name, view), dtype, indices in itertools.product(VIEWS.items(), DTYPES, INDICES):
        array = view(np.arange(24).reshape(4, 3, 2).astype(dtype))
        pair = take_with_kernel(array, indices), take_with_numpy(array, indices)
        results[f"{name}, {dtype}, {indices}"] = pair
    print(json.dumps(results))
