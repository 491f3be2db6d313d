"""Measure the bound of the BLAS: a lower bound of the time of a training step's call.

The bound is the sum of two times. The first is the time of all products of the loss and its
gradient, each computed alone by NumPy's multithreaded BLAS. The second is the time of the updates.
An update reads and writes a parameter, three states and a gradient; its time is the time to copy
the same number of bytes with all CPUs. The bound omits all other operations of the graph.

A call can take less time only if it computes products faster than this BLAS, as Theano's kernels
do.
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
# A measured call is repeated at least REPEATS times, and for at least SECONDS seconds. The shortest
# time counts.
REPEATS, SECONDS = 5, 0.05
# The number of passes of an update over arrays of the parameter's size: it reads and writes five
# arrays.
PASSES = 10


def measure_bound(graph: str) -> dict[str, float]:
    """Measure the two times of the bound, in seconds: "products", and "bytes" for the updates."""
    if graph == "tiny":
        return {"products": 0.0, "bytes": 0.0}
    if graph.startswith("ntm"):
        ntm = models.load_runtime_module("ntm")
        size = models.make_ntm_size(ntm, graph)
        shapes = {name: value.shape for name, value in ntm.initial_values(size, seed=1).items()}
        products = list(list_ntm_products(size, shapes))
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
        # A copy makes two passes: it reads one array and writes another.
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
    """Return the seconds to multiply ``count`` m x k matrices by the same k x n matrix."""
    a, b = np.ones((count, m, k), models.DTYPE), np.ones((k, n), models.DTYPE)
    product = np.empty((count, m, n), models.DTYPE)
    return measure_shortest(lambda: np.matmul(a, b, out=product))


def time_copy(numbers: int) -> float:
    """Return the seconds to copy ``numbers`` numbers of DTYPE, divided among all CPUs."""
    cpus = len(os.sched_getaffinity(0))
    parts = [np.ones((2, numbers // cpus), models.DTYPE) for _ in range(cpus)]
    with ThreadPoolExecutor(cpus) as pool:
        return measure_shortest(
            lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))
        )


def list_layer_products(
    rows: int, width: int, units: int, first: bool = False
) -> Iterator[Product]:
    """Yield the product of a layer's inputs and weights, and the products of its gradients.

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


def list_ntm_products(size: Any, shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a Neural Turing Machine."""
    for name, (width, units) in shapes.items():
        if name == "output":
            yield from list_layer_products(size.steps, width, units)
        elif name != "memory" and not name.endswith(".weighting"):
            yield size.steps, 1, units, width
            yield size.steps, 1, width, units
            yield 1, width, units, size.steps
    # Each head multiplies its key by the memory. A read head also multiplies its weighting by the
    # memory. The gradient of each product multiplies a vector by the transposed matrix.
    products = size.steps * (2 * len(size.heads) + 2 * size.read_heads)
    yield products // 2, 1, size.slots, size.width
    yield products // 2, 1, size.width, size.slots


def list_lstm_products(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of an LSTM. A layer multiplies its inputs of all steps at once."""
    steps, batch, units = (models.LSTM[name] for name in ("steps", "batch", "units"))
    # ``gates`` is the number of columns of a layer's weights: one per gate, four gates per unit.
    for name, (width, gates) in shapes.items():
        if name == "output":
            yield from list_layer_products(batch, width, gates)
        else:
            yield from list_layer_products(steps * batch, width - units, gates, name == "layer0")
            yield steps, batch, gates, units
            yield steps, batch, units, gates
            yield 1, units, gates, steps * batch


def list_mlp_products(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of dense layers."""
    for name, (width, units) in shapes.items():
        yield from list_layer_products(models.MLP["batch"], width, units, name == "layer0")


def list_conv_products(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a convolutional network.

    A convolution is the product of the filters and a matrix with a row for each receptive field.
    """
    batch, side = models.CONV["batch"], models.CONV["side"]
    for name, shape in shapes.items():
        if name == "output":
            yield from list_layer_products(batch, *shape)
        else:
            side -= shape[2] - 1
            field = int(np.prod(shape[1:]))
            yield from list_layer_products(batch * side**2, field, shape[0], name == "conv0")
            side //= 2


def list_transformer_products(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a transformer's layers and heads."""
    batch, positions, width, heads, _ = models.TRANSFORMER.values()
    for shape in shapes.values():
        if len(shape) == 2:
            yield from list_layer_products(batch * positions, *shape)
    # The product of queries and keys, the product of weights and values, and two gradients of each.
    yield 2 * batch * heads, positions, positions, width // heads
    yield 4 * batch * heads, positions, width // heads, positions


def list_vae_products(shapes: dict[str, Any]) -> Iterator[Product]:
    """Yield the products of a variational autoencoder."""
    for name, shape in shapes.items():
        if len(shape) == 2:
            width, units = shape
            yield from list_layer_products(models.VAE["batch"], width, units, name == "encode")


PRODUCTS = {
    "lstm": list_lstm_products,
    "mlp": list_mlp_products,
    "conv": list_conv_products,
    "transformer": list_transformer_products,
    "vae": list_vae_products,
}
