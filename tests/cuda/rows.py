"""Take rows of arrays with the kernel of GpuTakeRows, as a C++ function on the CPU.

Prints JSON: for each array and its indices, the rows that the kernel and NumPy take, or "beyond" if
an index is out of range.
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
# In memory order.
VIEWS = {
    "in order": lambda array: array,
    "backwards with gaps": lambda array: array[::-2, ::-1],
    "transposed": lambda array: array.T,
    "matrix": lambda array: array[:, :, 1],
    "vector": lambda array: array[:, 2, 1],
}
INDICES = ([0, 1], [1, -1, 1], [0, 9], [-9])


def by_kernel(array, indices):
    """Take rows with the kernel."""
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
    take = kernels_on_the_cpu.function(kernel)
    take(*map(ctypes.c_ssize_t, numbers), *memory, ctypes.byref(error))
    return "beyond" if error.value else out.tolist()


def by_numpy(array, indices):
    """Take rows with NumPy."""
    try:
        return array[indices].tolist()
    except IndexError:
        return "beyond"


if __name__ == "__main__":
    stubs.start()
    results = {}
    for (view, how), dtype, indices in itertools.product(VIEWS.items(), DTYPES, INDICES):
        array = how(np.arange(24).reshape(4, 3, 2).astype(dtype))
        pair = by_kernel(array, indices), by_numpy(array, indices)
        results[f"{view}, {dtype}, {indices}"] = pair
    print(json.dumps(results))
