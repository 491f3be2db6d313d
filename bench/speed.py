"""Measure the time of Theano's functions, one round for each line on standard input.

Start ``python speed.py GRAPH...``; GRAPH is a training step of ``theano_step``, such as ``ntm``.
The answer to a line is a line of JSON: the mean wall seconds of one call, by the name of the call.
The first round also compiles the functions.
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import theano
import theano.misc.check_blas
import theano.tensor as T
from theano_step import compile_training, finish_compilation

DTYPES = ("float32", "float64")
# The lengths of the vectors of elementwise calls.
SIZES = (1_000, 100_000, 10_000_000)
# A round repeats a call for at least this number of seconds.
LEAST_SECONDS = 0.1
# The order of the square matrices of check_blas, and the number of its products.
ORDER, PRODUCTS = 2000, 10


def compute_lstm_cell(
    input_gate: Any, forget_gate: Any, output_gate: Any, candidate: Any, cell: Any
) -> list[Any]:
    """Return the elementwise part of an LSTM step: the next cell state and output.

    This function applies sigmoid to the gates, and tanh to the candidate.
    """
    cell = T.nnet.sigmoid(forget_gate) * cell + T.nnet.sigmoid(input_gate) * T.tanh(candidate)
    return [cell, T.nnet.sigmoid(output_gate) * T.tanh(cell)]


# Maps the name of an elementwise expression to the expression and the number of its arguments.
ELEMWISE: dict[str, tuple[Callable[..., Any], int]] = {
    "exp": (T.exp, 1),
    "log": (T.log, 1),
    "tanh": (T.tanh, 1),
    "sigmoid": (T.nnet.sigmoid, 1),
    "pow": (T.pow, 2),
    "softplus": (T.nnet.softplus, 1),
    "lstm cell": (compute_lstm_cell, 5),
}


def measure_seconds(call: Callable[[], Any]) -> float:
    """Return the mean wall seconds of repeated calls, after an untimed call."""
    call()
    finish_compilation()
    calls, elapsed, started = 0, 0.0, time.perf_counter()
    while elapsed < LEAST_SECONDS:
        call()
        calls += 1
        elapsed = time.perf_counter() - started
    return elapsed / calls


def time_check_blas(dtype: str) -> float:
    """Return the seconds of a matrix product in Theano's ``check_blas``."""
    theano.config.floatX = dtype
    seconds, _ = theano.misc.check_blas.execute(
        verbose=False, M=ORDER, N=ORDER, K=ORDER, iters=PRODUCTS
    )
    theano.config.floatX = "float64"
    return float(seconds / PRODUCTS)


@functools.cache
def compile_elemwise(name: str, dtype: str) -> Any:
    """Compile the expression ``name`` of ELEMWISE into a function of vectors."""
    expression, count = ELEMWISE[name]
    inputs = [T.vector(dtype=dtype) for _ in range(count)]
    return theano.function(inputs, expression(*inputs))


@functools.cache
def compile_step(graph: str) -> Callable[[], float]:
    """Compile the training step of a graph; return a function that trains and returns the loss."""
    return compile_training(graph, theano.function)


def measure(graphs: list[str]) -> dict[str, float]:
    """Measure one round; return the mean wall seconds of each call, by the name of the call."""
    measured = {f"check_blas {dtype} {ORDER}": time_check_blas(dtype) for dtype in DTYPES}
    measured.update({graph: measure_seconds(compile_step(graph)) for graph in graphs})
    for name, dtype, length in itertools.product(ELEMWISE, DTYPES, SIZES):
        values = [np.linspace(0.1, 5, length).astype(dtype)] * ELEMWISE[name][1]
        call = functools.partial(compile_elemwise(name, dtype), *values)
        measured[f"{name} {dtype} {length:.0e}"] = measure_seconds(call)
    return measured


if __name__ == "__main__":
    for _ in sys.stdin:
        print(json.dumps(measure(sys.argv[1:])), flush=True)
