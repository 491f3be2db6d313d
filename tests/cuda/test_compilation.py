"""Every op of the back end compiles, and every kernel, to machine code of each architecture."""

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
    "GpuDnnPoolBase",
    "GpuDnnSoftmaxBase",
    "GpuMagmaBase",
}
# Former names of GpuCumOp and of GPUAChoiceFromUniform, for old pickles.
ALIASES = {"GpuCumsumOp", "GPUAMultinomialWOReplacementFromUniform"}
# They need warp-ctc, MAGMA or scikit-cuda, which the environment has not.
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

# In Theano 1.0.5 these refuse float64 and float16.
FLOAT32 = {"GPUAChoiceFromUniform", "GpuCumOp"}
# Theano does not compile them for float16, as their code does not know it: by their `_f16_ok`.
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
# They say they know it, and calculate with ga_half, which is a struct; or libgpuarray's reduction
# refuses it. In Theano 1.0.5 too: a convolution of float16 takes cuDNN.
WRONG = {
    "GpuCAReduceCPY",
    "GpuCorr3dMM",
    "GpuCorr3dMM_gradInputs",
    "GpuCorr3dMM_gradWeights",
    "GpuCorrMM",
    "GpuCorrMM_gradInputs",
    "GpuCorrMM_gradWeights",
}
NO_FORM = {"float32": set(), "float64": FLOAT32, "float16": FLOAT32 | UNAWARE | WRONG}


# Turing, Ampere, Hopper.
@pytest.mark.parametrize("capability", ["75", "80", "90"])
@pytest.mark.parametrize("dtype", NO_FORM)
def test_everything_compiles(run, dtype, capability):
    done = run(COMPILE, flags=f"floatX={dtype}", CAPABILITY=capability)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    compiled = len(found["compiled"])
    print(f"{dtype}, sm_{capability}: {compiled} ops, {len(done.kernels)} kernels")
    assert found["failures"] == []
    assert set(done.kernels) == {(f"sm_{capability}", "0")}
    absent = BASES | ALIASES | ELSEWHERE | NO_FORM[dtype]
    assert set(found["missing"]) ^ absent == set()
