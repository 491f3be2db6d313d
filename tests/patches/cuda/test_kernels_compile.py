"""cuda/gpuarray-kernels.patch keeps the base classes that programs derive from."""

from theano.gpuarray.basic_ops import GpuKernelBase, HideC
from theano.gpuarray.subtensor import GpuAdvancedSubtensor1
from theano.tensor import AdvancedSubtensor1


def test_a_program_derives_from_an_op_and_the_base_of_kernels():
    """GRU4Rec derives such a class, on every stack; the class needs no device."""

    class Rows(GpuKernelBase, GpuAdvancedSubtensor1):
        pass

    assert GpuAdvancedSubtensor1.__bases__ == (HideC, AdvancedSubtensor1)
    assert Rows.__mro__[1:3] == (GpuKernelBase, GpuAdvancedSubtensor1)
