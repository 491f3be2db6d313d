"""An NVIDIA device computes what the CPU computes: products, convolutions, networks, training.

Skipped where there is none, unless one was named. float32 is compared with float64 of the CPU:
a sum of n products of numbers below 1 errs by less than n units of the 24 bits.
"""

import functools
import gc
import itertools
import time
from typing import Any

import numpy as np
import theano
import theano.gpuarray
import theano.tensor as T
from theano.gpuarray import driver

from theano_fast import nn
from theano_fast.checks import scan
from theano_fast.checks.result import Options, Result

UNIT = 2.0**-24
# The size at which Theano's check_blas lists the times of GPUs.
SIZE, CALLS = 5000, 10
# cuDNN and cuBLAS keep some of what they took: kernels, handles and workspaces.
KEPT_BYTES = 256 << 20
# Recurrent networks: bidirectional or not, and the input mode.
KINDS = ((False, "linear"), (True, "linear"), (False, "skip"))
INPUTS, UNITS = 5, 7


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
    free = context.free_gmem
    failures, measurements = [], {"device": context.devname}
    for proof in (gemm, convolutions, functools.partial(recurrence, expected), training):
        wrong, measured = proof()
        failures += wrong
        measurements |= measured
    gc.collect()
    kept = free - context.free_gmem
    if kept > KEPT_BYTES:
        failures.append(f"{kept >> 20} MiB of the device's memory are not given back")
    return Result(
        f"{context.devname}: gemm {measurements['gflops']:.0f} GFLOP/s in float32",
        tuple(failures),
        measurements={**measurements, "kept": kept},
    )


def uniform(*shape: int) -> Any:
    """Return float32 numbers in (-1, 1), the same in each run."""
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype("float32")


def differs(what: str, got: Any, expected: Any, terms: int) -> list[str]:
    """Return a failure if float32 results err by more than sums of so many terms can."""
    error = float(np.abs(np.asarray(got, "float64") - expected).max())
    bound = terms * UNIT * max(1.0, float(np.abs(expected).max()))
    return [] if error <= bound else [f"{what} errs by {error:.2g}, allowed are {bound:.2g}"]


def gemm() -> tuple[list[str], dict[str, Any]]:
    """GpuGemm's values at order 500, and check_blas's speed at order 5000."""
    a, b, c = (theano.shared(uniform(500, 500)) for _ in range(3))
    product = theano.function([], updates=[(c, T.dot(a, b) + c)])
    expected = np.dot(a.get_value().astype("float64"), b.get_value()) + c.get_value()
    product()
    failures = differs("GpuGemm", c.get_value(), expected, 500)
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
    """conv2d and both its gradients, by cuDNN, against the CPU's in float64."""
    values = uniform(8, 3, 17, 19), uniform(5, 3, 4, 3)

    def function(dtype: str, mode: Any) -> Any:
        x, w = (T.TensorType(dtype, (False,) * 4)() for _ in range(2))
        y = T.nnet.conv2d(x, w, border_mode="half")
        return theano.function([x, w], [y, *T.grad((y**2).sum(), [x, w])], mode=mode)

    compiled = function("float32", None)
    kinds = {type(node.op).__name__ for node in compiled.maker.fgraph.toposort()}
    missing = {"GpuDnnConv", "GpuDnnConvGradI", "GpuDnnConvGradW"} - kinds
    failures = [f"{kind} is not used" for kind in sorted(missing)]
    on_cpu = theano.compile.get_default_mode().excluding("gpuarray")
    expected = function("float64", on_cpu)(*(value.astype("float64") for value in values))
    names = ("conv2d", "its gradient of the inputs", "its gradient of the weights")
    for name, got, right in zip(names, compiled(*values), expected, strict=True):
        failures += differs(name, got, right, 8 * 17 * 19)
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
        failures += differs(name, got, expected[name], 1000)
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
