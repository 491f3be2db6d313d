"""Take rows of arrays by the kernel of GpuAdvancedSubtensor1, as a function of C++ on the CPU.

Prints JSON: of each array and its indices, what the kernel takes and what NumPy does, or "beyond"
where an index is none.
"""

import ctypes
import itertools
import json

import compile as stubs
import kernels_on_the_cpu
import numpy as np
import theano.tensor as T
from theano.gpuarray.subtensor import GpuAdvancedSubtensor1
from theano.gpuarray.type import GpuArrayType

DTYPES = ("bool", "int16", "float32", "float64")
# As they lie in memory.
VIEWS = {
    "in order": lambda array: array,
    "backwards with gaps": lambda array: array[::-2, ::-1],
    "transposed": lambda array: array.T,
    "matrix": lambda array: array[:, :, 1],
    "vector": lambda array: array[:, 2, 1],
}
INDICES = ([0, 1], [1, -1, 1], [0, 9], [-9])


def by_kernel(array, indices):
    """What the kernel takes."""
    x = GpuArrayType(str(array.dtype), [False] * array.ndim)()
    node = GpuAdvancedSubtensor1()(x, T.lvector()).owner
    (kernel,) = node.op.gpu_kernels(node, "node")
    out = np.zeros((len(indices), *array.shape[1:]), array.dtype)
    numbers = [out.size, *itertools.chain(*zip(array.shape, array.strides, strict=True))]
    memory = [
        argument
        for each in (out, array, np.array(indices, "int64"))
        for argument in (ctypes.c_void_p(each.ctypes.data), ctypes.c_size_t(0))
    ]
    error = ctypes.c_int(0)
    take = kernels_on_the_cpu.function(kernel)
    take(*map(ctypes.c_ssize_t, numbers), *memory, ctypes.byref(error))
    return "beyond" if error.value else out.tolist()


def by_numpy(array, indices):
    """What NumPy takes."""
    try:
        return array[indices].tolist()
    except IndexError:
        return "beyond"


if __name__ == "__main__":
    stubs.start()
    found = {}
    for (view, how), dtype, indices in itertools.product(VIEWS.items(), DTYPES, INDICES):
        array = how(np.arange(24).reshape(4, 3, 2).astype(dtype))
        pair = by_kernel(array, indices), by_numpy(array, indices)
        found[f"{view}, {dtype}, {indices}"] = pair
    print(json.dumps(found))
