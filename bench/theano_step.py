"""Build the measured graphs in Theano, as training steps in ``models.DTYPE``.

``p`` maps the name of each parameter to its shared variable.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

import models
import numpy as np
import theano
import theano.tensor as T
from theano.tensor.signal import pool

Step = Callable[[], float]


def compile_step(graph: str) -> tuple[Step, dict[str, float]]:
    """Compile a graph.

    Returns:
        The training step, which trains and returns the loss; and the seconds by phase.
    """
    started = time.perf_counter()
    theano.config.floatX = models.DTYPE
    profiles = []

    def function(inputs: list[Any], output: Any, updates: Any = ()) -> Any:
        profiles.append(theano.compile.ProfileStats(atexit_print=False))
        compiled = theano.function(inputs, output, updates=updates, profile=profiles[-1])
        # The profile has the times of the compilation. Remove it, because it would slow down calls.
        compiled.profile = None
        compiled.fn.time_thunks = False
        return compiled

    step = compile_tiny(function) if graph == "tiny" else compile_training(graph, function)
    phases = {
        "optimizer": sum(profile.optimizer_time for profile in profiles),
        "linker": sum(profile.linker_time for profile in profiles),
    }
    return step, {"graph": time.perf_counter() - started - sum(phases.values()), **phases}


def finish_compilation() -> None:
    """Wait for the modules that theano-fast compiles in the background; stock Theano has none."""
    with contextlib.suppress(ImportError):
        background = importlib.import_module("theano.gof.background_compilation")
        background.compiler.finish()


def compile_training(graph: str, function: Any) -> Step:
    """Compile a step of gradient descent with RMSProp; it returns the loss before its update.

    Args:
        graph: the name of a graph, without a size.
        function: ``theano.function``, or a function with the same arguments.
    """
    if graph.startswith("ntm"):
        ntm = models.load_runtime_module("ntm")
        size = models.make_ntm_size(ntm, graph)
        machine = ntm.build(size)
        parameters, values = machine.parameters, ntm.copy_task(size, seed=1)
        inputs, targets, loss = machine.inputs, machine.targets, machine.loss
    else:
        parameters = {
            name: theano.shared(value, name=name)
            for name, value in models.make_initial_values(graph).items()
        }
        values = models.make_batch(graph)
        inputs = make_variable(values[0].ndim)
        classes = values[1].dtype == np.int64
        targets = T.lvector() if classes else make_variable(values[1].ndim)
        loss = LOSSES[graph](parameters, inputs, targets)
    trained = list(parameters.values())
    gradients = theano.grad(loss, trained)
    updates = models.load_runtime_module("rmsprop").updates(trained, gradients, models.RATE)
    step = function([inputs, targets], loss, updates=updates)
    return lambda: float(step(*values))


def make_variable(dimensions: int) -> Any:
    """Return a symbolic array of dtype floatX with 1 to 4 dimensions."""
    return {1: T.vector, 2: T.matrix, 3: T.tensor3, 4: T.tensor4}[dimensions]()


def compute_lstm_loss(p: dict[str, Any], inputs: Any, targets: Any) -> Any:
    """Return the mean square error of an LSTM's output; each layer is a scan."""
    units, batch = models.LSTM["units"], models.LSTM["batch"]

    def step(x: Any, cell: Any, hidden: Any, weights: Any) -> list[Any]:
        gates = T.dot(T.concatenate([x, hidden], axis=1), weights)
        write, keep, show = (
            T.nnet.sigmoid(gates[:, i * units : (i + 1) * units]) for i in range(3)
        )
        cell = keep * cell + write * T.tanh(gates[:, 3 * units :])
        return [cell, show * T.tanh(cell)]

    hidden = inputs
    for i in range(models.LSTM["layers"]):
        initial = [T.zeros((batch, units)), T.zeros((batch, units))]
        weights = [p[f"layer{i}"]]
        (_, hidden), _ = theano.scan(
            step, sequences=hidden, outputs_info=initial, non_sequences=weights
        )
    return T.sqr(T.dot(hidden[-1], p["output"]) - targets).mean()


def compute_cross_entropy(scores: Any, targets: Any) -> Any:
    """Return the mean cross-entropy of a classification.

    Args:
        scores: a row for each example.
        targets: the integer class of each example.
    """
    return -T.log(T.nnet.softmax(scores))[T.arange(targets.shape[0]), targets].mean()


def compute_mlp_loss(p: dict[str, Any], inputs: Any, targets: Any) -> Any:
    """Return the loss of a multilayer perceptron."""
    *below, last = p.values()
    hidden = functools.reduce(lambda x, weights: T.tanh(T.dot(x, weights)), below, inputs)
    return compute_cross_entropy(T.dot(hidden, last), targets)


def compute_conv_loss(p: dict[str, Any], inputs: Any, targets: Any) -> Any:
    """Return the loss of a convolutional network."""
    hidden = inputs
    for filters in (p["conv0"], p["conv1"]):
        convolved = T.nnet.conv2d(hidden, filters, filter_flip=False)
        hidden = T.tanh(pool.pool_2d(convolved, (2, 2), ignore_border=True))
    return compute_cross_entropy(T.dot(hidden.flatten(2), p["output"]), targets)


def normalize(x: Any, gain: Any, bias: Any) -> Any:
    """Normalize the last dimension (layer normalization)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / T.sqrt(T.sqr(centred).mean(axis=-1, keepdims=True) + 1e-5) + bias


def compute_transformer_loss(p: dict[str, Any], inputs: Any, targets: Any) -> Any:
    """Return the mean square error of a pre-norm transformer block."""
    batch, positions, width, heads, _ = models.TRANSFORMER.values()

    def split(x: Any) -> Any:
        parts = x.reshape((batch, positions, heads, width // heads)).dimshuffle(0, 2, 1, 3)
        return parts.reshape((batch * heads, positions, width // heads))

    x = normalize(inputs, p["norm0.gain"], p["norm0.bias"])
    query, key, value = (split(T.dot(x, p[name])) for name in ("query", "key", "value"))
    scores = T.batched_dot(query, key.dimshuffle(0, 2, 1)) / (width // heads) ** 0.5
    weights = T.nnet.softmax(scores.reshape((-1, positions))).reshape(scores.shape)
    read = T.batched_dot(weights, value).reshape((batch, heads, positions, width // heads))
    read = read.dimshuffle(0, 2, 1, 3).reshape((batch, positions, width))
    hidden = inputs + T.dot(read, p["mix"])
    x = normalize(hidden, p["norm1.gain"], p["norm1.bias"])
    x = T.nnet.relu(T.dot(x, p["widen"]) + p["widen.bias"])
    answers = hidden + T.dot(x, p["narrow"]) + p["narrow.bias"]
    return T.sqr(answers - targets).mean()


def compute_vae_loss(p: dict[str, Any], inputs: Any, targets: Any) -> Any:
    """Return a variational autoencoder's loss: the negative bound of Kingma and Welling (2013)."""

    def layer(x: Any, name: str) -> Any:
        return T.dot(x, p[name]) + p[f"{name}.bias"]

    random = T.shared_randomstreams.RandomStreams(models.SEED)
    hidden = T.tanh(layer(inputs, "encode"))
    mean, spread = layer(hidden, "mean"), layer(hidden, "spread")
    noise = random.normal((models.VAE["batch"], models.VAE["latent"]))
    hidden = T.tanh(layer(mean + T.exp(0.5 * spread) * noise, "decode"))
    painted = T.nnet.sigmoid(layer(hidden, "paint"))
    errors = T.nnet.binary_crossentropy(painted, targets).sum(axis=1)
    divergence = 0.5 * (T.sqr(mean) + T.exp(spread) - 1 - spread).sum(axis=1)
    return (errors + divergence).mean()


LOSSES = {
    "lstm": compute_lstm_loss,
    "mlp": compute_mlp_loss,
    "conv": compute_conv_loss,
    "transformer": compute_transformer_loss,
    "vae": compute_vae_loss,
}


def compile_tiny(function: Any) -> Step:
    """Compile the tiny functions; return a step that calls all functions and sums the results."""
    calls = []
    for i in range(models.TINY["functions"]):
        name = models.TINY_OPS[i % len(models.TINY_OPS)]
        op = getattr(T.nnet if name in ("sigmoid", "softplus") else T, name.replace("abs", "abs_"))
        values = models.make_tiny_inputs(i)
        x, y = make_variable(values[0].ndim), make_variable(values[0].ndim)
        calls.append(functools.partial(function([x, y], op(x * y + 1).sum()), *values))
    return lambda: float(np.sum([call() for call in calls]))
