"""Compute with kernels of GpuCAReduceCuda, as C++ functions on the CPU.

A block of one thread reduces all elements. Prints JSON: the results of each expression by a kernel
and by NumPy.
"""

import ctypes
import itertools
import json

import compile as stubs
import kernels_on_the_cpu
import numpy as np
import theano
import theano.tensor as T

DTYPES = ("int8", "uint8", "int32", "uint64", "float32", "float64")
REDUCTIONS = {
    "sum": lambda array, axis: array.sum(axis),
    "product": lambda array, axis: array.prod(axis),
    "maximum": lambda array, axis: array.max(axis),
    "sum of squares": lambda array, axis: (array * array).sum(axis),
    "maximum of absolute values": lambda array, axis: abs(array).max(axis),
}


def reducing(reduction, dtype, axis):
    """Return the node that reduces a matrix on the device."""
    x = T.matrix(dtype=dtype)
    graph = theano.gof.FunctionGraph([x], [REDUCTIONS[reduction](x, axis)])
    mode = theano.compile.get_mode("FAST_RUN").including("gpuarray").excluding("cudnn")
    mode.optimizer.optimize(graph)
    (node,) = (n for n in graph.toposort() if type(n.op).__name__ == "GpuCAReduceCuda")
    return node


def computed(node, value, out):
    """Return the result of the kernel for arrays in C order, or for the rows of a matrix."""
    kernels = {kernel.name: kernel for kernel in node.op.gpu_kernels(node, "node")}
    memory = [ctypes.c_void_p(array.ctypes.data) for array in (value, out)]
    if out.ndim:
        rows, columns = value.shape
        parameters = [rows, columns, memory[0], 0, columns, 1, memory[1], 0, 1]
        kernel = kernels["kernel_reduce_01"]
    else:
        parameters = [value.size, memory[0], 0, memory[1], 0]
        kernel = kernels["kernel_reduce_ccontig"]
    arguments = [
        parameter if parameter in memory else ctypes.c_size_t(parameter) for parameter in parameters
    ]
    kernels_on_the_cpu.function(kernel)(*arguments)
    return out.tolist()


if __name__ == "__main__":
    stubs.start()
    results = {}
    for reduction, dtype, axis in itertools.product(REDUCTIONS, DTYPES, (None, 1)):
        node = reducing(reduction, dtype, axis)
        value = (np.arange(12).reshape(3, 4) % 7 + 1).astype(dtype)
        expected = REDUCTIONS[reduction](value, axis)
        out = np.zeros_like(expected, node.outputs[0].dtype)
        got = computed(node, value, out)
        results[f"{reduction}, {dtype}, axis {axis}"] = got, expected.tolist()
    print(json.dumps(results))
