"""Define GPU ops with their own kernels, derived from Theano's ops; do not call them.

Programs define such classes when they are imported, on the CPU too.
"""

from theano.gof import Apply
from theano.gpuarray.basic_ops import GpuKernelBase, as_gpuarray_variable, infer_context_name
from theano.gpuarray.subtensor import GpuAdvancedIncSubtensor1, GpuAdvancedSubtensor1


class FastTake(GpuKernelBase, GpuAdvancedSubtensor1):
    """Select rows of a matrix with a kernel of this program."""

    def make_node(self, x, rows):
        context = infer_context_name(x, rows)
        x, rows = (as_gpuarray_variable(variable, context) for variable in (x, rows))
        return Apply(self, [x, rows], [x.type()])

    def gpu_kernels(self, node, nodename):
        raise NotImplementedError


class FastAdd(GpuKernelBase, GpuAdvancedIncSubtensor1):
    """Add to rows of a matrix."""

    def gpu_kernels(self, node, nodename):
        raise NotImplementedError


def results():
    """Yield the names of the classes in each op's method resolution order."""
    for op in (FastTake, FastAdd):
        yield [kind.__name__ for kind in op.__mro__]
