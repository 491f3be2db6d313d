"""cuda/gpuarray-kernels.patch keeps the base classes that programs derive from."""

from theano.gpuarray.basic_ops import GpuKernelBase, HideC
from theano.gpuarray.subtensor import GpuAdvancedSubtensor1
from theano.tensor import AdvancedSubtensor1


def test_programs_can_derive_from_a_kernel_base_and_an_op():
    """A class can derive from GpuKernelBase and GpuAdvancedSubtensor1, without a device.

    GRU4Rec defines this class on every stack.
    """

    class Rows(GpuKernelBase, GpuAdvancedSubtensor1):
        pass

    assert GpuAdvancedSubtensor1.__bases__ == (HideC, AdvancedSubtensor1)
    assert Rows.__mro__[1:3] == (GpuKernelBase, GpuAdvancedSubtensor1)
