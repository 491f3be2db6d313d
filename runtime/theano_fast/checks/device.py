"""Check an NVIDIA device against the CPU: products, convolutions, recurrent networks, training.

Without a usable device, the check is skipped, or fails if --device names a device. Results in
float32 and float16 are compared with results in float64 on the CPU. The allowed error of products
and convolutions is Higham's bound (accuracy.py).
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
from theano_fast.accuracy import compute_gamma
from theano_fast.checks import scan
from theano_fast.checks.result import Options, Result

# The unit roundoff of float32.
UNIT = 2.0**-24
# Theano's misc/check_blas.py lists times of many GPUs for this size and this number of calls.
SIZE, CALLS = 5000, 10
# The largest allowed memory leak in bytes. One matrix of order SIZE is larger.
KEPT_BYTES = 64 << 20
# The kinds of recurrent networks: (bidirectional, input mode).
KINDS = ((False, "linear"), (True, "linear"), (False, "skip"))
INPUTS, UNITS = 5, 7

# A function that checks one group of ops, and returns failures and measurements.
Proof = Callable[[], tuple[list[str], dict[str, Any]]]


def run(options: Options) -> Result:
    """Run each proof on the device; report differences from the CPU."""
    if options.stack.axes["device"] != "cuda":
        return Result(skipped="the stack has no device but the CPU")
    name = options.device or "cuda0"
    try:
        driver.check_device(name)
    except driver.DeviceError as error:
        reason = f"no NVIDIA device: {error}"
        return Result(failures=(reason,)) if options.device else Result(skipped=reason)
    # Compute on the CPU first: with an active device, Theano optimizes the steps of scans for the
    # device.
    expected = compute_networks("float64", "scan")
    theano.gpuarray.use(name, force=True)
    context = theano.gpuarray.get_context(None)
    proofs = (
        check_gemm,
        check_convolutions,
        functools.partial(check_networks, expected),
        check_training,
    )
    failures, measurements = run_proofs(context, proofs)
    return Result(
        f"{context.devname}: gemm {measurements['gflops']:.0f} GFLOP/s in float32,"
        f" {measurements['graphs']} CUDA graphs launched",
        tuple(failures),
        measurements={"device": context.devname, **measurements},
    )


def run_proofs(context: Any, proofs: tuple[Proof, ...]) -> tuple[list[str], dict[str, Any]]:
    """Run all proofs twice, or once if a proof fails; return failures and measurements.

    A memory leak in the second run is a failure. The first run may keep memory, for kernels and for
    the handles and workspaces of cuDNN and cuBLAS.
    """
    measurements: dict[str, Any] = {}
    for _ in range(2):
        free, failures = context.free_gmem, []
        for proof in proofs:
            proof_failures, proof_measurements = proof()
            failures += proof_failures
            measurements |= proof_measurements
        gc.collect()
        measurements["kept"] = free - context.free_gmem
        if failures:
            return failures, measurements
    if measurements["kept"] > KEPT_BYTES:
        kept = measurements["kept"] >> 20
        failures.append(f"{kept} MiB of the device's memory are not freed")
    return failures, measurements


def draw_uniform(*shape: int) -> Any:
    """Return float32 numbers in (-1, 1), the same in each run."""
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype("float32")


def compare_results(name: str, actual: Any, expected: Any, allowed: Any) -> list[str]:
    """Return a failure if the error of an element is larger than allowed.

    Args:
        name: the name of the result, for the message.
        actual: the result of the device, an array.
        expected: the result of the CPU, an array in float64.
        allowed: the largest allowed error: an array, or one number for all elements.
    """
    error = np.abs(np.asarray(actual, "float64") - expected)
    if (error <= allowed).all():
        return []
    allowed = np.broadcast_to(allowed, error.shape)
    worst = np.unravel_index((error / allowed).argmax(), error.shape)
    return [f"{name}: the error is {error[worst]:.2g}, allowed is {allowed[worst]:.2g}"]


def check_gemm() -> tuple[list[str], dict[str, Any]]:
    """Check GpuGemm's values at order 500, and measure its speed at order 5000."""
    values = [draw_uniform(500, 500) for _ in range(3)]
    a, b, c = map(theano.shared, values)
    product = theano.function([], updates=[(c, T.dot(a, b) + c)])
    first, second, added = (value.astype("float64") for value in values)
    expected = first @ second + added
    scale = np.abs(first) @ np.abs(second) + np.abs(added)
    product()
    failures = compare_results(
        "GpuGemm", c.get_value(), expected, compute_gamma(501, "float32") * scale
    )
    if "GpuGemm" not in {type(node.op).__name__ for node in product.maker.fgraph.toposort()}:
        failures.append("a product plus a matrix is not compiled to GpuGemm")

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


def check_convolutions() -> tuple[list[str], dict[str, Any]]:
    """Check cuDNN's conv2d and both of its gradients against float64 on the CPU.

    Theano's default algorithms add up products without an FFT or Winograd transform, so Higham's
    bound holds. A gradient is a sum of products with outputs, which are sums too. So the bound
    counts the terms of both sums. cuDNN adds up float16 numbers in float32, and rounds twice to
    float16: in the outputs and in the gradients.
    """
    arrays = draw_uniform(8, 3, 17, 19), draw_uniform(5, 3, 4, 3)
    names = ("conv2d", "gradient of conv2d for the inputs", "gradient of conv2d for the weights")

    def compile_graph(dtype: str, mode: Any) -> Any:
        x, w = (T.TensorType(dtype, (False,) * 4)() for _ in range(2))
        y = T.nnet.conv2d(x, w, border_mode="half")
        return theano.function([x, w], [y, *T.grad((y**2).sum(), [x, w])], mode=mode)

    reference = compile_graph("float64", theano.compile.get_default_mode().excluding("gpuarray"))
    failures = []
    for dtype in ("float32", "float16"):
        compiled = compile_graph(dtype, None)
        kinds = {type(node.op).__name__ for node in compiled.maker.fgraph.toposort()}
        missing = {"GpuDnnConv", "GpuDnnConvGradI", "GpuDnnConvGradW"} - kinds
        failures += [f"{kind} is not used in {dtype}" for kind in sorted(missing)]
        values = [array.astype(dtype) for array in arrays]
        exact = [value.astype("float64") for value in values]
        share = compute_gamma(4 * 3 * 3 + 8 * 17 * 19, "float32") + compute_gamma(2, dtype)
        results = compiled(*values), reference(*exact), reference(*map(np.abs, exact))
        for name, actual, expected, scale in zip(names, *results, strict=True):
            failures += compare_results(f"{name} in {dtype}", actual, expected, share * scale)
    return failures, {}


def compute_networks(dtype: str, backend: str) -> dict[str, Any]:
    """Return the outputs and gradients of recurrent networks of all modes and kinds, by name.

    Args:
        dtype: the dtype of weights and inputs.
        backend: "cudnn" or "scan", as in nn.RNN.
    """
    results = {}
    for mode, (bidirectional, input_mode) in itertools.product(nn.GATES, KINDS):
        inputs = UNITS if input_mode == "skip" else INPUTS
        layer = nn.RNN(mode, inputs, UNITS, 2, bidirectional, input_mode, dtype)
        layer.weights.set_value(draw_uniform(layer.size).astype(dtype))
        x = T.TensorType(dtype, (False,) * 3)()
        outputs = layer(x, backend=backend)
        loss = sum((output**2).sum() for output in outputs)
        named = dict(zip(("y", "h", "c"), outputs, strict=False))
        names = ("the gradient for x", "the gradient for the weights")
        named |= zip(names, T.grad(loss, [x, layer.weights]), strict=True)
        values = theano.function([x], list(named.values()))(
            draw_uniform(6, 4, inputs).astype(dtype)
        )
        kind = f"{mode}, {input_mode}, {'both directions' if bidirectional else 'one direction'}"
        for name, value in zip(named, values, strict=True):
            results[f"RNNBlock ({kind}): {name}"] = np.asarray(value)
    return results


def check_networks(expected: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Check RNNBlock's networks and their gradients against theano.scan on the CPU.

    The allowed error is 1000 unit roundoffs of float32, times max(1, |expected values|).
    """
    failures = []
    for name, actual in compute_networks("float32", "cudnn").items():
        exact = expected[name]
        failures += compare_results(
            name, actual, exact, 1000 * UNIT * max(1.0, np.abs(exact).max())
        )
    return failures, {}


def check_training() -> tuple[list[str], dict[str, Any]]:
    """Check that the float64 training step of checks/scan.py reaches the loss of the CPU.

    Later calls launch CUDA graphs; count the launches.
    """
    theano.config.floatX = "float64"
    step = scan.compile_training("small", gradients=False)
    # Functions with a profile use no CUDA graphs.
    step.function.profile, step.function.fn.time_thunks = None, False
    losses = [float(step()[0]) for _ in range(scan.CALLS)]
    expected = scan.REFERENCE["small"]
    failures = []
    if not abs(losses[-1] - expected) <= scan.TOLERANCE * expected:
        failures.append(f"training: the loss in the last call is {losses[-1]}, not {expected}")
    return failures, {"loss": losses[-1], "graphs": getattr(step.function.fn, "n_launched", 0)}
