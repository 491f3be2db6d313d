"""What the hardware lets a call of a measured graph take, at least: its products and its updates.

Products are those of the loss and its gradient, each timed alone in its own shape, by NumPy's BLAS
and threads. An update reads and writes a parameter and its three states, and a gradient; arrays so
large are copied, by all processors at once. What else a graph computes counts for nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import models
import numpy as np

# (count, m, n, k): so many products, one after another, of m x k and k x n.
Product = tuple[int, int, int, int]
# A measurement is the least of so many, and of those in so many seconds.
REPEATS, SECONDS = 5, 0.05
# What an update reads and writes of a parameter's size: it and three states, both, and a gradient,
# which was written before it is read.
PASSES = 10


def bound(graph: str) -> dict[str, float]:
    """Seconds that a call takes at least, by what takes them: "products", "bytes"."""
    if graph == "tiny":
        return {"products": 0.0, "bytes": 0.0}
    if graph.startswith("ntm"):
        # Theano has loaded it, or what stands in for Theano.
        ntm = sys.modules["ntm"]
        size = models.ntm_size(ntm, graph)
        shapes = {name: value.shape for name, value in ntm.initial_values(size, seed=1).items()}
        products = list(machine(size, shapes))
    else:
        shapes = models.shapes(graph)
        products = list(PRODUCTS[graph](shapes))
    seconds: dict[Product, float] = {}
    for product in products:
        if product not in seconds:
            seconds[product] = multiplied(*product)
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    return {
        "products": sum(seconds[product] for product in products),
        "bytes": copied(numbers * PASSES // 2),
    }


def least(call: Callable[[], Any]) -> float:
    """The least wall seconds of calls."""
    taken: list[float] = []
    while len(taken) < REPEATS or sum(taken) < SECONDS:
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return min(taken)


def multiplied(count: int, m: int, n: int, k: int) -> float:
    """Seconds of products that have one factor in common."""
    left, right, product = np.ones((count, m, k)), np.ones((k, n)), np.empty((count, m, n))
    return least(lambda: np.matmul(left, right, out=product))


def copied(numbers: int) -> float:
    """Seconds of a copy of so many numbers, of which each processor copies a part."""
    cpus = len(os.sched_getaffinity(0))
    parts = [(np.ones(numbers // cpus), np.empty(numbers // cpus)) for _ in range(cpus)]
    with ThreadPoolExecutor(cpus) as pool:
        return least(lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts)))


def layer(rows: int, above: int, below: int, first: bool = False) -> Iterator[Product]:
    """The products of one with weights: the layer's, and those of its gradients."""
    yield 1, rows, below, above
    yield 1, above, below, rows
    if not first:
        yield 1, rows, above, below


def machine(size: Any, shapes: dict[str, Any]) -> Iterator[Product]:
    """Those of a Neural Turing Machine: of vectors, but for gradients of weights."""
    for name, (above, below) in shapes.items():
        if name == "output":
            yield from layer(size.steps, above, below)
        elif name != "memory" and not name.endswith(".weighting"):
            yield size.steps, 1, below, above
            yield size.steps, 1, above, below
            yield 1, above, below, size.steps
    # Each head compares its key with the memory, a read head reads it.
    products = size.steps * (2 * len(size.heads) + 2 * size.read_heads)
    yield products // 2, 1, size.slots, size.width
    yield products // 2, 1, size.width, size.slots


def lstm(shapes: dict[str, Any]) -> Iterator[Product]:
    """Those of an LSTM: of all steps at once, but for what depends on the step before."""
    steps, batch, units = (models.LSTM[name] for name in ("steps", "batch", "units"))
    for name, (above, below) in shapes.items():
        if name == "output":
            yield from layer(batch, above, below)
        else:
            yield from layer(steps * batch, above - units, below, name == "layer0")
            yield steps, batch, below, units
            yield steps, batch, units, below
            yield 1, units, below, steps * batch


def mlp(shapes: dict[str, Any]) -> Iterator[Product]:
    """Those of dense layers."""
    for name, (above, below) in shapes.items():
        yield from layer(models.MLP["batch"], above, below, name == "layer0")


def conv(shapes: dict[str, Any]) -> Iterator[Product]:
    """Those of convolutions, as products with images of which each field is a row."""
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
    """Those of its layers, and of each head of each sequence."""
    batch, positions, width, heads, _ = models.TRANSFORMER.values()
    for shape in shapes.values():
        if len(shape) == 2:
            yield from layer(batch * positions, *shape)
    # The scores and what is read by them, each with two gradients.
    yield 2 * batch * heads, positions, positions, width // heads
    yield 4 * batch * heads, positions, width // heads, positions


def vae(shapes: dict[str, Any]) -> Iterator[Product]:
    """Those of its layers."""
    for name, shape in shapes.items():
        if len(shape) == 2:
            above, below = shape
            yield from layer(models.VAE["batch"], above, below, name == "encode")


PRODUCTS = {"lstm": lstm, "mlp": mlp, "conv": conv, "transformer": transformer, "vae": vae}
