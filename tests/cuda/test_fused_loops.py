"""cuda/gpuarray-kernels.patch: one kernel computes several elementwise results.

On the emulated device, results equal the CPU's results within rounding, for all shapes, types and
memory orders. Results equal the results of Theano's own kernels exactly. Without the patch, each
result needs a kernel launch.
"""

import ctypes
import json
import re
import sys

import numpy as np
import pytest

# Compute functions with several results, whose operations the optimization fuses. Tests run the
# program on the emulated device and on the CPU.
PROGRAM = """
import json, sys
import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray.fused_loops import GpuFusedLoops

def gates(x, y, v, s):
    # Increments of slices of a matrix, as in the gradient of the gates of an LSTM.
    product = T.exp(x)
    whole = T.concatenate([product, y, x], axis=1)
    changed = T.inc_subtensor(T.tanh(whole)[:, 1:4], product[:, :3] * 2)
    changed = T.set_subtensor(changed[:, -2:], T.sqr(y)[:, :2] + x[:, :2])
    return [changed, product, product + y, T.inc_subtensor((y * 2)[1], v * 3)]

def broadcast(x, y, v, s):
    return [x * v + s, T.tanh(s) * x, T.exp(v), v.dimshuffle(0, "x") + v, x.dimshuffle(1, 0) * 2]

def views(x, y, v, s):
    return [x[::-1, ::2] * 2, x.T * y.T, T.exp(x[:, 1:]) + y[:, 1:], T.concatenate([v, v * s, v])]

def numbers(x, y, v, s):
    # Constants of several types, and operations on integers.
    n = T.cast(x * 10, "int32")
    return [T.clip(x, -0.25, 0.5), n // 3, n % 4, T.eq(n, 2), T.switch(n > 1, x, -1e300 * y),
            T.cast(n, "uint8") + np.uint8(200), T.cast(x > 0, "int8") - 100]

def shapes(x, y, v, s):
    # Results with four dimensions, and an operand of shape (1, 1).
    z = x.dimshuffle("x", 0, "x", 1) * y.dimshuffle(0, "x", 1, "x")
    return [z, z + 1, T.addbroadcast(x[:1, :1], 0, 1) * y, T.sqr(s), s + 1]

def grow(x, y, v, s):
    # Only the call determines the increments' positions: negative, beyond the end, or empty.
    start = T.cast(s, "int64")
    z = T.exp(x)
    return [T.inc_subtensor((z + 1)[start:100], 5.0), T.set_subtensor((z * 2)[-1:start], 1.0),
            T.inc_subtensor((z + y)[start], v), T.inc_subtensor((z - y)[:, start], 2.5)]

dtype, results = sys.argv[1], {}
for function in (gates, broadcast, views, numbers, shapes, grow):
    inputs = [T.TensorType(dtype, [False] * ndim)() for ndim in (2, 2, 1, 0)]
    compiled = theano.function(inputs, function(*inputs), on_unused_input="ignore")
    fused = [n for n in compiled.maker.fgraph.toposort() if isinstance(n.op, GpuFusedLoops)]
    assert fused or theano.config.device == "cpu"
    for shape in ((3, 4), (5, 700)):
        random = np.random.RandomState(5)
        values = [random.standard_normal(size) for size in (shape, shape, shape[1:], ())]
        values = [np.asarray(value, dtype) for value in (*values[:3], 1)]
        for position, out in enumerate(compiled(*values)):
            key = f"{function.__name__} {position} {out.dtype} {out.shape}"
            results[key] = out.ravel().tolist()
print(json.dumps(results))
"""
# Update two shared variables in one kernel. Print the number of results that overwrite inputs, the
# outputs, and the values of the shared variables.
UPDATES = """
import numpy as np
import theano
import theano.tensor as T
a, b = (theano.shared(np.arange(6.0).reshape(2, 3) + i) for i in range(2))
x = T.dmatrix()
new = a * 0.5 + x
step = theano.function([x], T.sqrt(new), updates=[(a, new), (b, b * new + a)])
ops = [n.op for n in step.maker.fgraph.toposort() if type(n.op).__name__ == "GpuFusedLoops"]
print([len(op.inplace) for op in ops])
for _ in range(3):
    print(step(np.ones((2, 3))).tolist())
print(a.get_value().tolist(), b.get_value().tolist())
"""
# Print the errors for shapes that cannot be broadcast and for indices out of range, then the shapes
# of correct results.
ERRORS = """
import numpy as np
import theano
import theano.tensor as T
x, y, i = T.dmatrix(), T.dmatrix(), T.lscalar()
function = theano.function([x, y], [x + y, x * y, T.exp(x)])
joined = theano.function([x, y], [T.exp(x), T.concatenate([T.exp(x), y], axis=1)])
changed = theano.function([x, i], [T.exp(x), T.inc_subtensor(T.exp(x)[i], 1.0)])
small, large = np.ones((2, 3)), np.ones((3, 3))
for call in (lambda: function(small, large), lambda: joined(small, large),
             lambda: changed(small, 2), lambda: changed(small, -3)):
    try:
        call()
    except Exception as error:
        print(type(error).__name__)
for call in (lambda: changed(small, -2), lambda: function(small[:0], small[:0])):
    print([out.shape for out in call()])
"""
# A function with a lazy operation, ifelse; print whether the optimization fused loops.
LAZY = """
import theano
import theano.tensor as T
from theano.ifelse import ifelse
from theano.gpuarray.fused_loops import GpuFusedLoops
x, condition = T.dmatrix(), T.lscalar()
checked = theano.tensor.opt.assert_op(x, T.ge(condition, 0))
graphs = [T.tanh(x) + 1, ifelse(condition, T.exp(x).sum(), T.tanh(T.exp(x) - 1).sum(axis=1).sum())]
function = theano.function([x, condition], graphs)
print(any(isinstance(n.op, GpuFusedLoops) for n in function.maker.fgraph.toposort()))
"""
# Combine arrays of 0 to 5 rows. Their types do not declare the dimension as broadcastable, but
# Theano's own kernels broadcast an array with 1 row if no previous input is longer. `compare`
# prints the shapes or the error of a fused function, and whether Theano's own kernels give the same
# bits or the same error. The optimization "inplace" is excluded for Theano's own kernels, because
# they would fail if the array to overwrite is shorter than the result.
LENGTHS = """
import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray.fused_loops import GpuFusedLoops
x, y, z = T.dmatrices(3)
random = np.random.RandomState(3)
rows = [random.standard_normal((n, 4)) for n in range(6)]
def compare(outputs, *lengths):
    results = []
    for excluded in ([], ["gpua_fused_loops", "inplace"]):
        mode = theano.compile.get_default_mode().excluding(*excluded)
        function = theano.function([x, y, z], outputs, mode=mode, on_unused_input="ignore")
        ops = [type(n.op) for n in function.maker.fgraph.apply_nodes]
        assert (GpuFusedLoops in ops) != bool(excluded)
        # The second call has the memory of the first call's results.
        for _ in range(2):
            try:
                result = function(*(rows[n] for n in lengths))
                results.append([(v.shape, v.tobytes()) for v in result])
            except Exception as error:
                results.append(type(error).__name__)
    first = results[0]
    print([shape for shape, _ in first] if isinstance(first, list) else first,
          all(result == first for result in results))
compare([T.exp(x), x + y, x * z], 1, 3, 3)
compare([T.exp(x), x + y, x * z, T.sqr(y)], 1, 3, 5)
compare([T.exp(x), T.tanh(x) + y, T.mul(x, y, x)], 1, 0, 0)
compare([T.exp(y), T.add(y, x)], 1, 3, 0)
join = T.concatenate([x * 2, y * 2], axis=0)
compare([join, T.exp(x), join + z, T.sqr(join) * y], 1, 0, 3)
compare([join, join + z], 0, 1, 5)
compare([join, join + z], 1, 1, 5)
changed = T.set_subtensor(T.exp(z)[1:4], T.exp(x) * 2)
compare([changed, changed * 2, T.exp(x)], 1, 0, 5)
compare([changed, changed * 2, T.exp(x)], 3, 0, 5)
compare([changed, changed * 2, T.exp(x)], 2, 0, 5)
compare([T.inc_subtensor(T.exp(z)[1:4], T.exp(x) * 2), T.exp(x)], 1, 0, 5)
"""
LENGTH_RESULTS = [
    "[(1, 4), (3, 4), (3, 4)] True",
    "[(1, 4), (3, 4), (5, 4), (3, 4)] True",
    "[(1, 4), (0, 4), (0, 4)] True",
    "ValueError True",
    "[(1, 4), (1, 4), (3, 4), (0, 4)] True",
    "[(1, 4), (5, 4)] True",
    "ValueError True",
    "[(5, 4), (5, 4), (1, 4)] True",
    "[(5, 4), (5, 4), (3, 4)] True",
    "RuntimeError True",
    "[(5, 4), (1, 4)] True",
]
# The new value of a shared variable has a different shape than the old value, which the function
# also reads.
GROWING = """
import numpy as np
import theano
import theano.tensor as T
a = theano.shared(np.ones((1, 3)))
x = T.dmatrix()
step = theano.function([x], T.exp(a), updates=[(a, a * 0.5 + x)])
for rows in (1, 2, 2, 2):
    print(step(np.ones((rows, 3))).shape, a.get_value()[:, 0].tolist())
"""
# Print the code of a kernel with two results: a product, and the sum of this product and an input.
PRODUCT = """
import graphs
from theano import scalar
from theano.gpuarray.elemwise import GpuElemwise
from theano.gpuarray.fused_kernels import Program, Step
from theano.gpuarray.fused_loops import GpuFusedLoops
steps = Step(GpuElemwise(scalar.mul), (0, 1)), Step(GpuElemwise(scalar.add), (3, 2))
node = GpuFusedLoops(Program(3, (), steps, (3, 4))).make_node(*[graphs.on_device(2)] * 3)
print(node.op.gpu_kernels(node, "")[0].code)
"""
# The names of libgpuarray's header cluda.h that the kernel of PRODUCT uses, defined for NVRTC.
CLUDA = """
#define KERNEL extern "C" __global__
#define WITHIN_KERNEL static __device__
#define GLOBAL_MEM
#define LID_0 threadIdx.x
#define LDIM_0 blockDim.x
#define GID_0 blockIdx.x
#define GDIM_0 gridDim.x
typedef float ga_float;
typedef double ga_double;
typedef unsigned ga_uint;
typedef unsigned long long ga_ulong;
typedef unsigned long long ga_size;
typedef long long ga_ssize;
"""
CPU = "device=cpu,force_device=False"


def compute(emulate, *arguments, flags=""):
    """Run a program with arguments on the emulated device; return the lines of its output."""
    done = emulate("-c", *arguments, flags=flags)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 3e-6), ("float64", 1e-14)])
def test_results_equal_the_cpus_results(emulate, dtype, tolerance):
    on_device, on_cpu = (
        json.loads(compute(emulate, PROGRAM, dtype, flags=flags)[-1]) for flags in ("", CPU)
    )
    assert on_device.keys() == on_cpu.keys()
    for key, expected in on_cpu.items():
        np.testing.assert_allclose(
            on_device[key], expected, rtol=tolerance, atol=tolerance, err_msg=key
        )


def test_updates_overwrite_old_values(emulate):
    *_, inplace, first, second, third, values = compute(emulate, UPDATES)
    # Three results overwrite an input: the new values overwrite a and b, and the root overwrites x.
    # This is safe because each thread reads only the elements of a and b that it overwrites.
    assert inplace == "[3]"
    assert [first, second, third, values] == compute(emulate, UPDATES, flags=CPU)[-4:]


def test_lengths_of_1_are_broadcast_as_by_theanos_kernels(emulate):
    assert compute(emulate, LENGTHS)[-len(LENGTH_RESULTS) :] == LENGTH_RESULTS


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_is_rounded_before_the_next_operation(emulate, dtype):
    """NVRTC does not contract a product and a sum to fma, which rounds only once."""
    code = "\n".join(compute(emulate, PRODUCT, flags=f"floatX={dtype}"))
    code = CLUDA + code[code.index("WITHIN_KERNEL") :]
    assert "fma.rn" not in compile_to_ptx(code)
    unrounded = re.sub(r"= round_\w+\((\w+), zero\)", r"= \1", code)
    assert "fma.rn" in compile_to_ptx(unrounded)


def compile_to_ptx(code):
    """Compile a kernel with NVRTC; return its PTX code."""
    nvrtc = ctypes.CDLL(f"{sys.prefix}/lib/libnvrtc.so.13")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), None, 0, None, None) == 0
    assert nvrtc.nvrtcCompileProgram(program, 0, None) == 0
    assert nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)) == 0
    assembly = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetPTX(program, assembly) == 0
    return assembly.value.decode()


def test_a_new_value_may_have_a_different_shape(emulate):
    assert compute(emulate, GROWING)[-4:] == [
        "(1, 3) [1.5]",
        "(1, 3) [1.75, 1.75]",
        "(2, 3) [1.875, 1.875]",
        "(2, 3) [1.9375, 1.9375]",
    ]


def test_wrong_shapes_and_indices_are_errors(emulate):
    assert compute(emulate, ERRORS)[-6:] == [
        "ValueError",
        "ValueError",
        "IndexError",
        "IndexError",
        "[(2, 3), (2, 3)]",
        "[(0, 3), (0, 3), (0, 3)]",
    ]


def test_a_function_with_a_lazy_operation_is_not_changed(emulate):
    assert compute(emulate, LAZY)[-1] == "False"
