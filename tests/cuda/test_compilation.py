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
# Nothing can compile it: in Theano 1.0.5 its C code is none. RNNBlock does not need it.
BROKEN = {"GpuDnnDropoutOp"}


# Turing, Ampere, Hopper.
@pytest.mark.parametrize("capability", ["75", "80", "90"])
def test_everything_compiles(run, capability):
    done = run(COMPILE, flags="floatX=float32", CAPABILITY=capability)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"sm_{capability}: {len(found['compiled'])} ops, {len(done.kernels)} kernels")
    assert found["failures"] == []
    assert set(done.kernels) == {(f"sm_{capability}", "0")}
    assert set(found["missing"]) ^ (BASES | ALIASES | ELSEWHERE | BROKEN) == set()
