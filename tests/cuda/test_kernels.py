"""cuda/gpuarray-kernels.patch: Theano's own kernels compute correct results and report errors.

Without the patch, many reductions are 0, no kernel takes rows, a kernel increments the elements of
a vector one after the other, and a process crashes if a kernel does not compile.
"""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# An op whose kernel contains a name that is not declared; print the error of its compilation.
NOT_DECLARED = """
import compile as stubs
stubs.start()
import theano
from theano import scalar
from theano.gpuarray.elemwise import GpuElemwise
from theano.gpuarray.type import GpuArrayType
class NoKernel(scalar.UnaryScalarOp):
    def c_code(self, node, name, inputs, outputs, sub):
        return f"{outputs[0]} = not_declared;"
x = GpuArrayType("float32", [False])()
mode = theano.compile.get_mode("FAST_RUN").including("gpuarray")
try:
    theano.function([x], GpuElemwise(NoKernel(scalar.same_out, name="no_kernel"))(x), mode=mode)
except RuntimeError as error:
    print(error)
"""
# Print the ops that increment and set elements of vectors.
INCREMENTS = """
import compile as stubs
stubs.start()
import theano
from theano import tensor as T
def op(dtype, change):
    x, y, indices = T.TensorType(dtype, [False])(), T.TensorType(dtype, [False])(), T.lvector()
    graph = theano.gof.FunctionGraph([x, y, indices], [change(x[indices], y)])
    theano.compile.get_mode("FAST_RUN").including("gpuarray").optimizer.optimize(graph)
    (gpu_op,) = (n.op for n in graph.apply_nodes if hasattr(n.op, "set_instead_of_inc"))
    return type(gpu_op).__name__
print(op("float32", T.inc_subtensor), op("float32", T.set_subtensor), op("uint8", T.inc_subtensor))
"""


@pytest.mark.parametrize(("program", "kernels"), [("reductions.py", 60), ("rows.py", 80)])
def test_kernels_compute_numpys_results(run, program, kernels):
    done = run(HERE / program)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert len(result) == kernels
    assert {name: pair for name, pair in result.items() if pair[0] != pair[1]} == {}


def test_the_error_has_the_compilers_message(run):
    """A kernel that does not compile raises RuntimeError with NVRTC's error."""
    done = run("-c", NOT_DECLARED)
    assert done.returncode == 0, done.stderr
    assert "NVRTC_ERROR_COMPILATION" in done.stdout


@pytest.mark.parametrize(
    ("deterministic", "first"),
    [("default", "GpuIncrementCheckedRows"), ("more", "GpuAdvancedIncSubtensor1")],
)
def test_one_kernel_increments_a_vector_if_the_order_may_vary(run, deterministic, first):
    """With ``deterministic=more``, or for set_subtensor or uint8, Theano's own op is used."""
    done = run("-c", INCREMENTS, flags=f"deterministic={deterministic}")
    assert done.returncode == 0, done.stderr
    op = "GpuAdvancedIncSubtensor1"
    assert done.stdout.splitlines()[-1] == f"{first} {op} {op}"
