"""An NVIDIA device computes what the CPU computes: products, convolutions, networks, training.

Skipped where there is none, unless one was named. float32 and float16 are compared with float64 of
the CPU; what products and convolutions may err by is Higham's bound.
"""

import functools
import gc
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import theano
import theano.gpuarray
import theano.tensor as T
from theano.gpuarray import driver

from theano_fast import nn
from theano_fast.accuracy import gamma
from theano_fast.checks import scan
from theano_fast.checks.result import Options, Result

UNIT = 2.0**-24
# The size at which Theano's check_blas lists the times of GPUs.
SIZE, CALLS = 5000, 10
# Less than one array of the large product.
KEPT_BYTES = 64 << 20
# Recurrent networks: bidirectional or not, and the input mode.
KINDS = ((False, "linear"), (True, "linear"), (False, "skip"))
INPUTS, UNITS = 5, 7

# What is wrong, and what was measured.
Proof = Callable[[], tuple[list[str], dict[str, Any]]]


def run(options: Options) -> Result:
    """Run each proof on the device; name what differs from the CPU."""
    if options.stack.axes["device"] != "cuda":
        return Result(skipped="the stack has no device but the CPU")
    name = options.device or "cuda0"
    try:
        driver.check(name)
    except driver.DeviceError as error:
        reason = f"no NVIDIA device: {error}"
        return Result(failures=(reason,)) if options.device else Result(skipped=reason)
    # The steps of a scan are optimized for a device as soon as one is in use.
    expected = networks("float64", "scan")
    theano.gpuarray.use(name, force=True)
    context = theano.gpuarray.get_context(None)
    proofs = (gemm, convolutions, functools.partial(recurrence, expected), training)
    failures, measurements = prove(context, proofs)
    return Result(
        f"{context.devname}: gemm {measurements['gflops']:.0f} GFLOP/s in float32",
        tuple(failures),
        measurements={"device": context.devname, **measurements},
    )


def prove(context: Any, proofs: tuple[Proof, ...]) -> tuple[list[str], dict[str, Any]]:
    """Run proofs twice, and say what they found and whether the second time kept memory.

    What cuDNN and cuBLAS keep, kernels, handles and workspaces, they take the first time.
    """
    measurements: dict[str, Any] = {}
    for _ in range(2):
        free, failures = context.free_gmem, []
        for proof in proofs:
            wrong, measured = proof()
            failures += wrong
            measurements |= measured
        gc.collect()
        measurements["kept"] = free - context.free_gmem
        if failures:
            return failures, measurements
    if measurements["kept"] > KEPT_BYTES:
        kept = measurements["kept"] >> 20
        failures.append(f"{kept} MiB of the device's memory are not given back")
    return failures, measurements


def uniform(*shape: int) -> Any:
    """Return float32 numbers in (-1, 1), the same in each run."""
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype("float32")


def differs(what: str, got: Any, expected: Any, allowed: Any) -> list[str]:
    """Return a failure if results err by more than is allowed, of each or of all of them."""
    error = np.abs(np.asarray(got, "float64") - expected)
    if (error <= allowed).all():
        return []
    allowed = np.broadcast_to(allowed, error.shape)
    worst = np.unravel_index((error / allowed).argmax(), error.shape)
    return [f"{what} errs by {error[worst]:.2g}, allowed are {allowed[worst]:.2g}"]


def gemm() -> tuple[list[str], dict[str, Any]]:
    """GpuGemm's values at order 500, and check_blas's speed at order 5000."""
    values = [uniform(500, 500) for _ in range(3)]
    a, b, c = map(theano.shared, values)
    product = theano.function([], updates=[(c, T.dot(a, b) + c)])
    left, right, added = (value.astype("float64") for value in values)
    expected = left @ right + added
    scale = np.abs(left) @ np.abs(right) + np.abs(added)
    product()
    failures = differs("GpuGemm", c.get_value(), expected, gamma(501, "float32") * scale)
    if "GpuGemm" not in {type(node.op).__name__ for node in product.maker.fgraph.toposort()}:
        failures.append("a product and a sum are no GpuGemm")

    large = theano.shared(np.ones((SIZE, SIZE), "float32"))
    out = theano.shared(np.ones((SIZE, SIZE), "float32"))
    multiply = theano.function([], updates=[(out, T.dot(large, large))])
    multiply()
    out.get_value(borrow=True, return_internal_type=True).sync()
    started = time.perf_counter()
    for _ in range(CALLS):
        multiply()
    out.get_value(borrow=True, return_internal_type=True).sync()
    seconds = time.perf_counter() - started
    return failures, {"gemm": seconds, "gflops": 2 * SIZE**3 * CALLS / seconds / 1e9}


def convolutions() -> tuple[list[str], dict[str, Any]]:
    """conv2d and both its gradients, by cuDNN, against the CPU's in float64.

    The algorithms that Theano takes unless told otherwise sum products, by no transform. The
    gradients sum products with the outputs, so that the errors of both sums add up. float16 is
    summed in float32, and rounded with the outputs and with the gradients.
    """
    arrays = uniform(8, 3, 17, 19), uniform(5, 3, 4, 3)
    names = ("conv2d", "its gradient of the inputs", "its gradient of the weights")

    def function(dtype: str, mode: Any) -> Any:
        x, w = (T.TensorType(dtype, (False,) * 4)() for _ in range(2))
        y = T.nnet.conv2d(x, w, border_mode="half")
        return theano.function([x, w], [y, *T.grad((y**2).sum(), [x, w])], mode=mode)

    reference = function("float64", theano.compile.get_default_mode().excluding("gpuarray"))
    failures = []
    for dtype in ("float32", "float16"):
        compiled = function(dtype, None)
        kinds = {type(node.op).__name__ for node in compiled.maker.fgraph.toposort()}
        missing = {"GpuDnnConv", "GpuDnnConvGradI", "GpuDnnConvGradW"} - kinds
        failures += [f"{kind} is not used in {dtype}" for kind in sorted(missing)]
        values = [array.astype(dtype) for array in arrays]
        exact = [value.astype("float64") for value in values]
        share = gamma(4 * 3 * 3 + 8 * 17 * 19, "float32") + gamma(2, dtype)
        results = compiled(*values), reference(*exact), reference(*map(np.abs, exact))
        for name, got, right, scale in zip(names, *results, strict=True):
            failures += differs(f"{name} in {dtype}", got, right, share * scale)
    return failures, {}


def networks(dtype: str, backend: str) -> dict[str, Any]:
    """Return what recurrent networks of all kinds compute by a back end, and their gradients."""
    results = {}
    for mode, (bidirectional, input_mode) in itertools.product(nn.GATES, KINDS):
        inputs = UNITS if input_mode == "skip" else INPUTS
        layer = nn.RNN(mode, inputs, UNITS, 2, bidirectional, input_mode, dtype)
        layer.weights.set_value(uniform(layer.size).astype(dtype))
        x = T.TensorType(dtype, (False,) * 3)()
        outputs = layer(x, backend=backend)
        loss = sum((output**2).sum() for output in outputs)
        named = dict(zip(("y", "h", "c"), outputs, strict=False))
        named["the gradient of x"], named["that of the weights"] = T.grad(loss, [x, layer.weights])
        values = theano.function([x], list(named.values()))(uniform(6, 4, inputs).astype(dtype))
        kind = f"{mode}, {input_mode}, {'both directions' if bidirectional else 'one direction'}"
        for name, value in zip(named, values, strict=True):
            results[f"RNNBlock ({kind}): {name}"] = np.asarray(value)
    return results


def recurrence(expected: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """RNNBlock's networks and their gradients, against theano.scan's on the CPU."""
    failures = []
    for name, got in networks("float32", "cudnn").items():
        right = expected[name]
        failures += differs(name, got, right, 1000 * UNIT * max(1.0, np.abs(right).max()))
    return failures, {}


def training() -> tuple[list[str], dict[str, Any]]:
    """The scan check's training step in float64 on the device: the loss that it has on the CPU."""
    theano.config.floatX = "float64"
    step = scan.compile_training("small", gradients=False)
    losses = [float(step()[0]) for _ in range(scan.CALLS)]
    expected = scan.REFERENCE["small"]
    failures = []
    if not abs(losses[-1] - expected) <= scan.TOLERANCE * expected:
        failures.append(f"training: the loss at the last call is {losses[-1]}, not {expected}")
    return failures, {"loss": losses[-1]}
