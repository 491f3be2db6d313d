"""Reduce arrays with the kernels of GpuCAReduceCuda, compiled as C++ functions for the CPU.

One thread reduces all elements. The program prints JSON: for each reduction, dtype and axis, the
results of the kernel and of NumPy.
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


def make_node(reduction, dtype, axis):
    """Optimize a reduction of a matrix for the device; return the node of GpuCAReduceCuda."""
    x = T.matrix(dtype=dtype)
    graph = theano.gof.FunctionGraph([x], [REDUCTIONS[reduction](x, axis)])
    mode = theano.compile.get_mode("FAST_RUN").including("gpuarray").excluding("cudnn")
    mode.optimizer.optimize(graph)
    (node,) = (n for n in graph.toposort() if type(n.op).__name__ == "GpuCAReduceCuda")
    return node


def reduce_with_kernel(node, value, out):
    """Reduce ``value`` into ``out`` with a kernel of ``node``; return ``out`` as a list.

    If ``out`` has no dimension, the kernel reduces all elements of an array in C order. Otherwise,
    it reduces the rows of a matrix.
    """
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
    kernels_on_the_cpu.load_function(kernel)(*arguments)
    return out.tolist()


if __name__ == "__main__":
    stubs.start()
    results = {}
    for reduction, dtype, axis in itertools.product(REDUCTIONS, DTYPES, (None, 1)):
        node = make_node(reduction, dtype, axis)
        value = (np.arange(12).reshape(3, 4) % 7 + 1).astype(dtype)
        expected = REDUCTIONS[reduction](value, axis)
        out = np.zeros_like(expected, node.outputs[0].dtype)
        actual = reduce_with_kernel(node, value, out)
        results[f"{reduction}, {dtype}, axis {axis}"] = actual, expected.tolist()
    print(json.dumps(results))
