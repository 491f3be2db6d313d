"""An NVIDIA device computes what the CPU computes: products, convolutions, networks, training.

Skipped where there is none, unless one was named. float32 is compared with float64 of the CPU:
a sum of n products of numbers below 1 errs by less than n units of the 24 bits.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import theano
import theano.gpuarray
import theano.tensor as T
from theano.gpuarray import driver

from theano_fast.checks import scan
from theano_fast.checks.result import Options, Result

UNIT = 2.0**-24
# The size at which Theano's check_blas lists the times of GPUs.
SIZE, CALLS = 5000, 10
# cuDNN and cuBLAS keep some of what they took: kernels, handles and workspaces.
KEPT_BYTES = 256 << 20


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
    theano.gpuarray.use(name, force=True)
    context = theano.gpuarray.get_context(None)
    free = context.free_gmem
    failures, measurements = [], {"device": context.devname}
    for proof in (gemm, convolutions, networks, training):
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


def sigmoid(x: Any) -> Any:
    """Return the logistic function of an array."""
    return 1 / (1 + np.exp(-x))


def lstm_step(x: Any, h: Any, c: Any, weights: list[Any]) -> tuple[Any, Any]:
    """cuDNN's LSTM: gates are input, forget, new memory and output."""
    gates = [
        x @ weights[i][0] + weights[i][1] + h @ weights[i + 4][0] + weights[i + 4][1]
        for i in range(4)
    ]
    c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * np.tanh(gates[2])
    return sigmoid(gates[3]) * np.tanh(c), c


def gru_step(x: Any, h: Any, c: Any, weights: list[Any]) -> tuple[Any, Any]:
    """cuDNN's GRU: gates are reset, update and new memory; reset applies after the product."""
    seen = [x @ weights[i][0] + weights[i][1] for i in range(3)]
    kept = [h @ weights[i + 3][0] + weights[i + 3][1] for i in range(3)]
    reset, update = (sigmoid(seen[i] + kept[i]) for i in range(2))
    return (1 - update) * np.tanh(seen[2] + reset * kept[2]) + update * h, c


def networks() -> tuple[list[str], dict[str, Any]]:
    """RNNBlock's LSTM and GRU, outputs and gradient, against their definitions in NumPy."""
    return network("lstm", lstm_step) + network("gru", gru_step), {}


def network(mode: str, step: Callable[..., tuple[Any, Any]]) -> list[str]:
    """Return how one kind of network differs: 6 steps, 4 sequences, 5 inputs, 7 units."""
    block = theano.gpuarray.dnn.RNNBlock("float32", 7, 1, mode)
    weights = theano.shared(uniform(block.get_param_size((4, 5))))
    parts = [np.asarray(part, "float64") for part in block.split_params(weights, 0, (4, 5))]
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    inputs, state = uniform(6, 4, 5), uniform(1, 4, 7)

    x, h = T.TensorType("float32", (False,) * 3)(), theano.shared(state)
    y = block.apply(weights, x, h, *([h] if mode == "lstm" else []))[0]
    outputs, slopes = theano.function([x], [y, T.grad((y**2).sum(), x)])(inputs)

    def expected(values: Any) -> Any:
        now = cell = state[0].astype("float64")
        states = []
        for value in values:
            now, cell = step(value, now, cell, pairs)
            states.append(now)
        return np.array(states)

    direction = uniform(6, 4, 5).astype("float64")[::-1]
    above, below = (
        (expected(inputs + sign * scan.DIFFERENCE * direction) ** 2).sum() for sign in (1, -1)
    )
    slope = np.array((above - below) / (2 * scan.DIFFERENCE))
    failures = differs(f"RNNBlock's {mode}", outputs, expected(inputs), 1000)
    got = (slopes * direction).sum()
    return failures + differs(f"the gradient of RNNBlock's {mode}", got, slope, 10000)


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
