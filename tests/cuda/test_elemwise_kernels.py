"""cuda/gpuarray-kernels.patch: threads compile the elementwise kernels that libgpuarray writes.

Without elemwise_kernels.py, libgpuarray compiles five kernels for each elementwise operation on
matrices, one after another.
"""

import json

import pytest

# Compile and call functions whose operations libgpuarray writes: elementwise operations on arrays
# of equal shapes, in-place and on two types, and increments.
PROGRAM = """
import compile as stubs
stubs.start()
import sys
import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray.elemwise import GpuElemwise
mode = theano.compile.get_mode("FAST_RUN").including("gpuarray").excluding("gpua_fused_loops")
dtypes, n_ops = sys.argv[1:], 0
for dtype in dtypes:
    x, y, z = T.TensorType(dtype, [False] * 2)(), T.TensorType(dtype, [False] * 2)(), T.fmatrix()
    row = T.TensorType(dtype, [True, False])()
    outputs = [x + y, T.sqr(x + y) - 1, T.eq(x, y), x * row, T.inc_subtensor(x[1:], y[1:])]
    outputs += [x * z, x * y]
    values = [np.ones((3, 4), v.dtype) for v in (x, y, z)] + [np.ones((1, 4), dtype)]
    for output in outputs:
        function = theano.function([x, y, z, row], output, mode=mode, on_unused_input="ignore")
        n_ops += sum(isinstance(n.op, GpuElemwise) for n in function.maker.fgraph.toposort())
        function(*values)
print(n_ops)
"""
# Compute elementwise operations and increments of arrays with 1 to 5 axes, of several shapes and
# strides, in one function for each number of axes. Print whether the results equal NumPy's.
RESULTS = """
import json
import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray.elemwise import GpuElemwise
mode = theano.compile.get_default_mode().excluding("gpua_fused_loops")
correct = []
for ndim in (1, 2, 3, 4, 5):
    x, y = (T.TensorType("float64", [False] * ndim)() for _ in range(2))
    first = T.TensorType("float64", [True] + [False] * (ndim - 1))()
    last = T.TensorType("float64", [False] * (ndim - 1) + [True])()
    changed = T.inc_subtensor(x[..., 1:], y[..., 1:]), T.inc_subtensor(x[1:], y[:1])
    outputs = [x * y - 1, x / first, x + last, first - last, x[::-1, ...] * y, *changed]
    function = theano.function([x, y, first, last], outputs, mode=mode)
    assert any(isinstance(n.op, GpuElemwise) for n in function.maker.fgraph.toposort())
    for length in (1, 3, 4, 0):
        shape = (5, 2, length, 3, 2)[:ndim]
        a, b = (np.random.RandomState(i).rand(*shape) + 0.5 for i in range(2))
        for p, q in ((a, b), (a.T.copy().T, b), (np.flip(a), b.T.copy().T)):
            f, l = q[:1], q[..., :1]
            if p.shape[-1] < 1:
                f, l = np.ones((1,) + shape[1:]), np.ones(shape[:-1] + (1,))
            one, two = p.copy(), p.copy()
            one[..., 1:] += q[..., 1:]
            two[1:] += q[:1]
            expected = [p * q - 1, p / f, p + l, f - l, p[::-1] * q, one, two]
            results = function(p, q, f, l)
            correct += [bool((r == e).all()) for r, e in zip(results, expected)]
print(json.dumps(correct))
"""


@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("int8", "int64", "uint16")])
def test_threads_compile_the_kernels_that_libgpuarray_writes(run, tmp_path, dtypes):
    early = tmp_path / "early"
    flags = f"dnn.enabled=False,base_compiledir={tmp_path}/compiled"
    done = run("-c", PROGRAM, *dtypes, flags=flags, EARLY_KERNELS=str(early))
    assert done.returncode == 0, done.stderr
    n_early = len(early.read_text().splitlines())
    assert int(done.stdout.splitlines()[-1]) == 6 * len(dtypes)
    print(f"{len(done.kernels)} kernels, {n_early} of them in threads")
    assert len(done.kernels) == n_early
    # Two functions need the kernel for products of contiguous arrays. It is compiled once. The
    # cache also contains the shipped kernels of libgpuarray's BLAS.
    files = [path for path in tmp_path.rglob("gpuarray_kernels/*/*/*") if path.is_file()]
    assert len(files) - 6 == n_early


def test_results_are_correct_for_all_shapes_and_strides(emulate, tmp_path):
    """Kernels for other numbers of axes and other strides are compiled in the first calls."""
    done = emulate("-c", RESULTS, flags=f"base_compiledir={tmp_path}/compiled")
    assert done.returncode == 0, done.stderr
    correct = json.loads(done.stdout.splitlines()[-1])
    assert len(correct) == 5 * 4 * 3 * 7
    assert all(correct)
