"""Build the models of ``theano_step`` in JAX, in ``models.DTYPE``.

``p`` maps the name of each parameter to its value.
"""

from __future__ import annotations

import functools
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import models
import numpy as np
from jax import lax, nn

# The directory of JAX's compile cache. By default JAX has no cache on disk.
jax.config.update("jax_compilation_cache_dir", str(models.CACHE / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
Step = Callable[[], float]
Arrays = dict[str, Any]


class Compilations:
    """Compiles functions, and sums the seconds of tracing (``graph``) and of XLA (``compile``)."""

    def __init__(self) -> None:
        self.seconds = {"graph": 0.0, "compile": 0.0}

    def compile(self, python: Callable[..., Any], *arguments: Any, donate: Any = ()) -> Any:
        """Compile a function for arguments with the shapes and dtypes of ``arguments``.

        Args:
            python: the function.
            arguments: examples of the arguments.
            donate: the indices of arguments whose buffers the results may reuse.
        """
        began = time.perf_counter()
        lowered = jax.jit(python, donate_argnums=donate).lower(*arguments)
        traced = time.perf_counter()
        compiled = lowered.compile()
        self.seconds["graph"] += traced - began
        self.seconds["compile"] += time.perf_counter() - traced
        return compiled


def compile_step(graph: str) -> tuple[Step, dict[str, float]]:
    """Compile a graph.

    Returns:
        The training step, which trains and returns the loss; and the seconds by phase.
    """
    # With jax_enable_x64 = False, JAX converts all arrays to 32 bits.
    jax.config.update("jax_enable_x64", models.DTYPE == "float64")
    compilations = Compilations()
    step = compile_tiny(compilations) if graph == "tiny" else compile_training(graph, compilations)
    return step, compilations.seconds


def compile_training(graph: str, compilations: Compilations) -> Step:
    """Compile a step of gradient descent with RMSProp; it returns the loss before its update."""
    if graph.startswith("ntm"):
        ntm = _load_ntm()
        size = models.make_ntm_size(ntm, graph)
        values, data = ntm.initial_values(size, seed=1), ntm.copy_task(size, seed=1)
        loss: Any = functools.partial(compute_ntm_loss, ntm, size)
    else:
        values, data = models.make_initial_values(graph), models.make_batch(graph)
        loss = LOSSES[graph]
    parameters = {name: jnp.asarray(value) for name, value in values.items()}
    zeros = [{name: jnp.zeros_like(value) for name, value in parameters.items()} for _ in range(3)]
    inputs, targets = (jnp.asarray(value) for value in data)
    # Only the autoencoder has another argument, its noise.
    noise = [jnp.zeros((models.VAE["batch"], models.VAE["latent"]))] if graph == "vae" else []
    draw = make_normals() if graph == "vae" else tuple

    def train(state: list[Arrays], *arguments: Any) -> tuple[list[Arrays], Any]:
        loss_value, gradients = jax.value_and_grad(loss)(state[0], *arguments)
        return apply_rmsprop(state, gradients), loss_value

    state = [parameters, *zeros]
    compiled = compilations.compile(train, state, inputs, targets, *noise, donate=0)

    def step() -> float:
        nonlocal state
        state, loss_value = compiled(state, inputs, targets, *draw())
        return float(loss_value)

    return step


def apply_rmsprop(state: list[Arrays], gradients: Arrays) -> list[Arrays]:
    """Return the state after an update, with the equations of ``theano_fast.rmsprop``.

    A state is a list of four dictionaries by name of the parameter: the parameters, and RMSProp's
    variables ``square``, ``mean`` and ``delta``.
    """
    result: list[Arrays] = [{}, {}, {}, {}]
    for name, gradient in gradients.items():
        parameter, square, mean, delta = (values[name] for values in state)
        clipped = jnp.clip(gradient, -10, 10)
        square = 0.95 * square + 0.05 * clipped**2
        mean = 0.95 * mean + 0.05 * clipped
        delta = 0.9 * delta - models.RATE * clipped / jnp.sqrt(square - mean**2 + 1e-4)
        for values, value in zip(result, (parameter + delta, square, mean, delta)):
            values[name] = value
    return result


def _load_ntm() -> Any:
    """Load the runtime's module ``ntm``, for its sizes, initial values and task.

    The module imports Theano, which this environment lacks. A placeholder replaces Theano.
    """
    config = types.SimpleNamespace(floatX=models.DTYPE)
    theano = types.SimpleNamespace(config=config, tensor=None)
    sys.modules.update({"theano": theano, "theano.tensor": theano})  # type: ignore[dict-item]
    return models.load_runtime_module("ntm")


def compute_ntm_loss(ntm: Any, size: Any, p: Arrays, inputs: Any, targets: Any) -> Any:
    """Return a Neural Turing Machine's loss: the mean binary cross-entropy of its outputs.

    Args:
        ntm: the runtime's module ``ntm``.
        size: the sizes of the machine, an ``ntm.Size``.
        p: the parameters.
        inputs: shape (steps, bits + 1).
        targets: shape (length, bits).
    """
    heads, hidden = size.heads, size.controller
    shifts = np.stack([np.roll(np.arange(size.slots), offset) for offset in ntm.SHIFTS])

    def address(emitted: Arrays, memory: Any, previous: Any) -> Any:
        key = jnp.tanh(emitted["key"])
        beta, gate = nn.softplus(emitted["beta"][0]), nn.sigmoid(emitted["gate"][0])
        gamma = 1 + nn.softplus(emitted["gamma"][0])
        norms = jnp.sqrt((memory**2).sum(axis=1) * (key**2).sum() + ntm.EPSILON)
        gated = gate * nn.softmax(beta * (memory @ key) / norms) + (1 - gate) * previous
        sharpened = (nn.softmax(emitted["shift"]) @ gated[shifts] + ntm.EPSILON) ** gamma
        return sharpened / sharpened.sum()

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        cell, output, memory, weightings, reads = state
        received = jnp.concatenate([x, *reads, output, jnp.ones(1)])
        gates = (received @ p["controller"]).reshape((4, hidden))
        write, keep, show = (nn.sigmoid(gates[i]) for i in range(3))
        cell = keep * cell + write * jnp.tanh(gates[3])
        output = show * jnp.tanh(cell)
        features = jnp.concatenate([output, jnp.ones(1)])
        turned, reads = [], []
        for i, head in enumerate(heads):
            names = {name.partition(".")[2]: name for name in p if name.startswith(f"{head}.")}
            del names["weighting"]
            emitted = {name: features @ p[full] for name, full in names.items()}
            turned.append(address(emitted, memory, weightings[i]))
            if head.startswith("write"):
                erase, add = nn.sigmoid(emitted["erase"]), jnp.tanh(emitted["add"])
                memory = memory * (1 - jnp.outer(turned[i], erase)) + jnp.outer(turned[i], add)
            else:
                reads.append(turned[i] @ memory)
        return (cell, output, memory, turned, reads), jnp.concatenate([output, *reads, jnp.ones(1)])

    first = [nn.softmax(p[f"{head}.weighting"][0]) for head in heads]
    reads = [jnp.zeros(size.width)] * size.read_heads
    initial = (jnp.zeros(hidden), jnp.zeros(hidden), p["memory"], first, reads)
    _, shown = lax.scan(step, initial, inputs)
    answers = nn.sigmoid(shown @ p["output"])[size.steps - size.length :]
    return -(targets * jnp.log(answers) + (1 - targets) * jnp.log(1 - answers)).mean()


def compute_lstm_loss(p: Arrays, inputs: Any, targets: Any) -> Any:
    """Return the mean square error of an LSTM's output; each layer is a scan."""
    units = models.LSTM["units"]

    def step(weights: Any, state: Any, x: Any) -> tuple[Any, Any]:
        cell, hidden = state
        gates = jnp.concatenate([x, hidden], axis=1) @ weights
        write, keep, show = (nn.sigmoid(gates[:, i * units : (i + 1) * units]) for i in range(3))
        cell = keep * cell + write * jnp.tanh(gates[:, 3 * units :])
        hidden = show * jnp.tanh(cell)
        return (cell, hidden), hidden

    hidden, zeros = inputs, jnp.zeros((models.LSTM["batch"], units))
    for i in range(models.LSTM["layers"]):
        _, hidden = lax.scan(functools.partial(step, p[f"layer{i}"]), (zeros, zeros), hidden)
    return ((hidden[-1] @ p["output"] - targets) ** 2).mean()


def compute_cross_entropy(scores: Any, targets: Any) -> Any:
    """Return the mean cross-entropy of a classification.

    Args:
        scores: a row for each example.
        targets: the integer class of each example.
    """
    return -jnp.log(nn.softmax(scores))[jnp.arange(targets.shape[0]), targets].mean()


def compute_mlp_loss(p: Arrays, inputs: Any, targets: Any) -> Any:
    """Return the loss of a multilayer perceptron."""
    *below, last = (p[f"layer{i}"] for i in range(models.MLP["layers"]))
    hidden = functools.reduce(lambda x, weights: jnp.tanh(x @ weights), below, inputs)
    return compute_cross_entropy(hidden @ last, targets)


def compute_conv_loss(p: Arrays, inputs: Any, targets: Any) -> Any:
    """Return the loss of a convolutional network."""
    hidden = inputs
    for filters in (p["conv0"], p["conv1"]):
        convolved = lax.conv_general_dilated(hidden, filters, (1, 1), "VALID")
        pooled = lax.reduce_window(
            convolved, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
        )
        hidden = jnp.tanh(pooled)
    return compute_cross_entropy(hidden.reshape((hidden.shape[0], -1)) @ p["output"], targets)


def normalize(x: Any, gain: Any, bias: Any) -> Any:
    """Normalize the last dimension (layer normalization)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) + bias


def compute_transformer_loss(p: Arrays, inputs: Any, targets: Any) -> Any:
    """Return the mean square error of a pre-norm transformer block."""
    batch, positions, width, heads, _ = models.TRANSFORMER.values()

    def split(x: Any) -> Any:
        return x.reshape((batch, positions, heads, width // heads)).transpose((0, 2, 1, 3))

    x = normalize(inputs, p["norm0.gain"], p["norm0.bias"])
    query, key, value = (split(x @ p[name]) for name in ("query", "key", "value"))
    weights = nn.softmax(query @ key.transpose((0, 1, 3, 2)) / (width // heads) ** 0.5)
    read = (weights @ value).transpose((0, 2, 1, 3)).reshape((batch, positions, width))
    hidden = inputs + read @ p["mix"]
    x = normalize(hidden, p["norm1.gain"], p["norm1.bias"])
    answers = hidden + nn.relu(x @ p["widen"] + p["widen.bias"]) @ p["narrow"] + p["narrow.bias"]
    return ((answers - targets) ** 2).mean()


def make_normals() -> Callable[[], tuple[Any, ...]]:
    """Return a function that draws the noise of the next call with NumPy.

    Theano's RandomStreams draws the same numbers.
    """
    seed = np.random.RandomState(models.SEED).randint(2**30)
    random, shape = np.random.RandomState(seed), (models.VAE["batch"], models.VAE["latent"])
    return lambda: (random.normal(size=shape).astype(models.DTYPE),)


def compute_vae_loss(p: Arrays, inputs: Any, targets: Any, noise: Any) -> Any:
    """Return a variational autoencoder's loss: the negative bound of Kingma and Welling (2013)."""

    def layer(x: Any, name: str) -> Any:
        return x @ p[name] + p[f"{name}.bias"]

    hidden = jnp.tanh(layer(inputs, "encode"))
    mean, spread = layer(hidden, "mean"), layer(hidden, "spread")
    hidden = jnp.tanh(layer(mean + jnp.exp(0.5 * spread) * noise, "decode"))
    painted = nn.sigmoid(layer(hidden, "paint"))
    errors = -(targets * jnp.log(painted) + (1 - targets) * jnp.log(1 - painted)).sum(axis=1)
    divergence = 0.5 * (mean**2 + jnp.exp(spread) - 1 - spread).sum(axis=1)
    return (errors + divergence).mean()


LOSSES = {
    "lstm": compute_lstm_loss,
    "mlp": compute_mlp_loss,
    "conv": compute_conv_loss,
    "transformer": compute_transformer_loss,
    "vae": compute_vae_loss,
}


def compile_tiny(compilations: Compilations) -> Step:
    """Compile the tiny functions; return a step that calls all functions and sums the results."""
    calls = []
    for i in range(models.TINY["functions"]):
        name = models.TINY_OPS[i % len(models.TINY_OPS)]
        op = getattr(
            nn if name in ("sigmoid", "softplus") else jnp, {"sqr": "square"}.get(name, name)
        )
        values = [jnp.asarray(value) for value in models.make_tiny_inputs(i)]
        # Pass a new function object each time. Otherwise JAX would reuse the compiled function.
        compiled = compilations.compile(lambda x, y, op=op: op(x * y + 1).sum(), *values)
        calls.append(functools.partial(compiled, *values))
    return lambda: float(np.sum([float(call()) for call in calls]))
