"""Compile all ops of the gpuarray back end, and their kernels for several architectures."""

import json
from pathlib import Path

import pytest

COMPILE = Path(__file__).with_name("compile.py")

# Base classes. Graphs contain only ops of their subclasses.
BASES = {
    "BaseGpuCorr3dMM",
    "BaseGpuCorrMM",
    "BlasOp",
    "CGpuKernelBase",
    "DnnBase",
    "GpuAdvancedSubtensor1",
    "GpuDnnPoolBase",
    "GpuDnnSoftmaxBase",
    "GpuMagmaBase",
}
# Former names of GpuCumOp and of GPUAChoiceFromUniform. Old pickles need them.
ALIASES = {"GpuCumsumOp", "GPUAMultinomialWOReplacementFromUniform"}
# Ops that need warp-ctc, MAGMA or scikit-cuda. The environment does not contain these libraries.
NEED_LIBRARIES = {
    "CuIRFFTOp",
    "CuRFFTOp",
    "GpuCholesky",
    "GpuConnectionistTemporalClassification",
    "GpuCublasTriangularSolve",
    "GpuCusolverSolve",
    "GpuMagmaCholesky",
    "GpuMagmaEigh",
    "GpuMagmaMatrixInverse",
    "GpuMagmaQR",
    "GpuMagmaSVD",
}

# This project's op. It does not fuse float16 operations: each operation has its own kernel.
FUSED = {"GpuFusedLoops"}
# Ops that refuse float64 and float16, in stock Theano too.
FLOAT32_ONLY = {"GPUAChoiceFromUniform", "GpuCumOp"}
# Ops whose `_f16_ok` is false: Theano does not compile them for float16.
WITHOUT_FLOAT16 = {
    "GpuAdvancedBooleanIncSubtensor",
    "GpuAdvancedBooleanSubtensor",
    "GpuAdvancedIncSubtensor",
    "GpuAdvancedSubtensor",
    "GpuAllocDiag",
    "GpuAveragePoolGrad",
    "GpuDnnBatchNorm",
    "GpuDnnBatchNormGrad",
    "GpuDnnBatchNormInference",
    "GpuDnnRNNGradInputs",
    "GpuDnnRNNGradWeights",
    "GpuDnnRNNOp",
    "GpuDownsampleFactorMaxGradGrad",
    "GpuGemv",
    "GpuGer",
    "GpuImages2Neibs",
    "GpuMaxAndArgmax",
    "GpuMaxPoolGrad",
    "GpuMaxPoolRop",
    "GpuPool",
    "GpuSparseBlockGemv",
    "GpuSparseBlockOuter",
    "_RNNSplitParams",
}
# Ops whose `_f16_ok` is true, although their compilation for float16 fails, also in stock Theano.
# The C code of some ops calculates with ga_half, which is a struct. libgpuarray's reduction refuses
# float16. For convolutions in float16, use cuDNN.
FAILING_FLOAT16 = {
    "GpuCAReduceCPY",
    "GpuCorr3dMM",
    "GpuCorr3dMM_gradInputs",
    "GpuCorr3dMM_gradWeights",
    "GpuCorrMM",
    "GpuCorrMM_gradInputs",
    "GpuCorrMM_gradWeights",
}
# Maps each floatX to the ops that do not compile for it.
UNSUPPORTED = {
    "float32": set(),
    "float64": FLOAT32_ONLY,
    "float16": FLOAT32_ONLY | WITHOUT_FLOAT16 | FAILING_FLOAT16 | FUSED,
}


# The compute capabilities of Turing, Ampere and Hopper.
@pytest.mark.parametrize("capability", ["75", "80", "90"])
@pytest.mark.parametrize("dtype", UNSUPPORTED)
def test_every_op_compiles(run, dtype, capability):
    """Only the ops that this module lists do not compile, and NVRTC accepts all kernels."""
    done = run(COMPILE, flags=f"floatX={dtype}", CAPABILITY=capability)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    compiled = len(result["compiled"])
    print(f"{dtype}, sm_{capability}: {compiled} ops, {len(done.kernels)} kernels")
    assert result["failures"] == []
    assert set(done.kernels) == {(f"sm_{capability}", "0")}
    expected = BASES | ALIASES | NEED_LIBRARIES | UNSUPPORTED[dtype]
    assert set(result["missing"]) ^ expected == set()


# Compile one elementwise function for the device.
FUNCTION = """
import compile as stubs
stubs.start()
import theano
x = theano.tensor.fmatrix()
theano.function([x], theano.tensor.{function}(x))
"""


# graphs.py does not use these functions. Therefore the other tests have not cached their kernels.
@pytest.mark.parametrize(
    ("capability", "function"), [("100", "arcsinh"), ("103", "arccosh"), ("120", "arctanh")]
)
def test_later_devices_compile_for_hopper(run, capability, function):
    """For devices newer than Hopper, NVRTC compiles PTX for sm_90, which the driver compiles."""
    done = run("-c", FUNCTION.format(function=function), CAPABILITY=capability)
    assert done.returncode == 0, done.stderr
    assert set(done.kernels) == {("sm_90", "0")}
