"""Compile every op of the back end, and every kernel to machine code of each architecture."""

import json
from pathlib import Path

import pytest

COMPILE = Path(__file__).with_name("compile.py")

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
# Former names of GpuCumOp and of GPUAChoiceFromUniform, for old pickles.
ALIASES = {"GpuCumsumOp", "GPUAMultinomialWOReplacementFromUniform"}
# These need warp-ctc, MAGMA or scikit-cuda, which the environment does not contain.
ELSEWHERE = {
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

# Theano 1.0.5 lacks this op. The op does not support float16; such nodes keep their own kernels.
FUSED = {"GpuFusedLoops"}
# Theano 1.0.5 refuses float64 and float16 for these too.
FLOAT32 = {"GPUAChoiceFromUniform", "GpuCumOp"}
# Theano does not compile these for float16, because their `_f16_ok` is false.
UNAWARE = {
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
# Their `_f16_ok` is true, but they calculate with ga_half, which is a struct, or libgpuarray's
# reduction refuses float16. Theano 1.0.5 fails too; a convolution of float16 needs cuDNN.
WRONG = {
    "GpuCAReduceCPY",
    "GpuCorr3dMM",
    "GpuCorr3dMM_gradInputs",
    "GpuCorr3dMM_gradWeights",
    "GpuCorrMM",
    "GpuCorrMM_gradInputs",
    "GpuCorrMM_gradWeights",
}
NO_FORM = {"float32": set(), "float64": FLOAT32, "float16": FLOAT32 | UNAWARE | WRONG | FUSED}


# The compute capabilities of Turing, Ampere and Hopper.
@pytest.mark.parametrize("capability", ["75", "80", "90"])
@pytest.mark.parametrize("dtype", NO_FORM)
def test_every_op_compiles(run, dtype, capability):
    done = run(COMPILE, flags=f"floatX={dtype}", CAPABILITY=capability)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    compiled = len(result["compiled"])
    print(f"{dtype}, sm_{capability}: {compiled} ops, {len(done.kernels)} kernels")
    assert result["failures"] == []
    assert set(done.kernels) == {(f"sm_{capability}", "0")}
    absent = BASES | ALIASES | ELSEWHERE | NO_FORM[dtype]
    assert set(result["missing"]) ^ absent == set()


FUNCTION = """
import compile as stubs
stubs.start()
import theano
x = theano.tensor.fmatrix()
theano.function([x], theano.tensor.{function}(x))
"""


# graphs.py does not use these functions, so the cache has no Hopper kernels for them.
@pytest.mark.parametrize(
    ("capability", "function"), [("100", "arcsinh"), ("103", "arccosh"), ("120", "arctanh")]
)
def test_later_devices_compile_for_hopper(run, capability, function):
    """For devices newer than Hopper (9.0), NVRTC makes Hopper's PTX, which the driver compiles."""
    done = run("-c", FUNCTION.format(function=function), CAPABILITY=capability)
    assert done.returncode == 0, done.stderr
    assert set(done.kernels) == {("sm_90", "0")}
