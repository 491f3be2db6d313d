"""Measure a lower bound of the time of a training step's call on this machine.

The bound is the sum of two times, for products and for updates. Each product of the loss and its
gradient is timed alone, with NumPy's BLAS and its threads. An update reads and writes a parameter,
three states and a gradient. Its bound is the time to copy the same number of bytes with all CPUs.
Other operations of the graph count as 0.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import models
import numpy as np

# (count, m, n, k): ``count`` products of an m x k and a k x n matrix, one after another.
Product = tuple[int, int, int, int]
# A measurement is the shortest time of at least REPEATS calls in at least SECONDS seconds.
REPEATS, SECONDS = 5, 0.05
# The number of passes of an update over arrays of the parameter's size: it reads and writes the
# parameter, three states and the gradient.
PASSES = 10


def measure_bound(graph: str) -> dict[str, float]:
    """Return the lower bound of a call in seconds: "products", and "bytes" for the updates."""
    if graph == "tiny":
        return {"products": 0.0, "bytes": 0.0}
    if graph.startswith("ntm"):
        ntm = models.load_runtime_module("ntm")
        size = models.make_ntm_size(ntm, graph)
        shapes = {name: value.shape for name, value in ntm.initial_values(size, seed=1).items()}
        products = list(machine(size, shapes))
    else:
        shapes = models.make_shapes(graph)
        products = list(PRODUCTS[graph](shapes))
    seconds: dict[Product, float] = {}
    for product in products:
        if product not in seconds:
            seconds[product] = time_products(*product)
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    return {
        "products": sum(seconds[product] for product in products),
        # A copy passes over two arrays: it reads one and writes the other.
        "bytes": time_copy(numbers * PASSES // 2),
    }


def measure_shortest(call: Callable[[], Any]) -> float:
    """Return the shortest wall time of repeated calls, in seconds."""
    seconds: list[float] = []
    while len(seconds) < REPEATS or sum(seconds) < SECONDS:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def time_products(count: int, m: int, n: int, k: int) -> float:
    """Return the seconds of ``count`` products of different m x k matrices and one k x n matrix."""
    a, b, product = np.ones((count, m, k)), np.ones((k, n)), np.empty((count, m, n))
    return measure_shortest(lambda: np.matmul(a, b, out=product))


def time_copy(numbers: int) -> float:
    """Return the seconds to copy ``numbers`` float64 numbers, divided among all CPUs."""
    cpus = len(os.sched_getaffinity(0))
    parts = [(np.ones(numbers // cpus), np.empty(numbers // cpus)) for _ in range(cpus)]
    with ThreadPoolExecutor(cpus) as pool:
        return measure_shortest(
            lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))
        )


def layer(rows: int, width: int, units: int, first: bool = False) -> Iterator[Product]:
    """Yield the products of a layer: of its inputs and weights, and for its gradients.

    Args:
        rows: the number of rows of the inputs.
        width: the number of inputs per row.
        units: the number of outputs per row.
        first: whether the layer is the first, which needs no gradient of its inputs.
    """
    yield 1, rows, units, width
    yield 1, width, units, rows
    if not first:
        yield 1, rows, width, units


def machine(size: Any, shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a Neural Turing Machine."""
    for name, (width, units) in shapes.items():
        if name == "output":
            yield from layer(size.steps, width, units)
        elif name != "memory" and not name.endswith(".weighting"):
            yield size.steps, 1, units, width
            yield size.steps, 1, width, units
            yield 1, width, units, size.steps
    # Each head multiplies its key by the memory. A read head also multiplies its weighting by the
    # memory. The gradient of each product has another product.
    products = size.steps * (2 * len(size.heads) + 2 * size.read_heads)
    yield products // 2, 1, size.slots, size.width
    yield products // 2, 1, size.width, size.slots


def lstm(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of an LSTM; products of a layer's inputs are for all steps at once."""
    steps, batch, units = (models.LSTM[name] for name in ("steps", "batch", "units"))
    # ``gates`` is the number of outputs of a layer's weights: four gates of each unit.
    for name, (width, gates) in shapes.items():
        if name == "output":
            yield from layer(batch, width, gates)
        else:
            yield from layer(steps * batch, width - units, gates, name == "layer0")
            yield steps, batch, gates, units
            yield steps, batch, units, gates
            yield 1, units, gates, steps * batch


def mlp(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of dense layers."""
    for name, (width, units) in shapes.items():
        yield from layer(models.MLP["batch"], width, units, name == "layer0")


def conv(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a convolutional network.

    A convolution is the product of the filters and a matrix with a row for each receptive field.
    """
    batch, side = models.CONV["batch"], models.CONV["side"]
    for name, shape in shapes.items():
        if name == "output":
            yield from layer(batch, *shape)
        else:
            side -= shape[2] - 1
            field = int(np.prod(shape[1:]))
            yield from layer(batch * side**2, field, shape[0], name == "conv0")
            side //= 2


def transformer(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a transformer's layers and heads."""
    batch, positions, width, heads, _ = models.TRANSFORMER.values()
    for shape in shapes.values():
        if len(shape) == 2:
            yield from layer(batch * positions, *shape)
    # The products of queries and keys, and of weights and values, each with two gradients.
    yield 2 * batch * heads, positions, positions, width // heads
    yield 4 * batch * heads, positions, width // heads, positions


def vae(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a variational autoencoder."""
    for name, shape in shapes.items():
        if len(shape) == 2:
            width, units = shape
            yield from layer(models.VAE["batch"], width, units, name == "encode")


PRODUCTS = {"lstm": lstm, "mlp": mlp, "conv": conv, "transformer": transformer, "vae": vae}
