"""Compare Theano's kernels for matrix products with the stack's BLAS, in one process.

Run it with a stack's Python: ``build/envs/mkl/bin/python bench/products.py float32``. It prints a
row for each product: the time in microseconds of a call of ``theano.tensor.dot`` with the kernels
and with the BLAS, and their ratio.
"""

from __future__ import annotations

import statistics
import sys

import numpy as np
import theano
from bounds import measure_shortest
from theano import tensor
from theano.tensor import thunks_ext

# Products of the graphs of bench/models.py: (graph, m, k, n, whether the second matrix is
# transposed). The first matrix has m rows and k columns, the product has n columns.
PRODUCTS = [
    ("transformer block", 64, 64, 32, False),
    ("LSTM", 16, 256, 512, False),
    ("LSTM, gradient", 16, 512, 256, True),
    ("dense layers", 64, 256, 256, False),
    ("dense layers, gradient", 64, 256, 256, True),
    ("variational autoencoder", 64, 784, 400, False),
    ("transformer block", 512, 128, 512, False),
    ("LSTM, all steps", 800, 256, 512, False),
]
# The number of rounds that alternate between kernels and BLAS.
ROUNDS = 20


def main(dtype: str = "float64") -> None:
    """Print the table of PRODUCTS for a dtype."""
    random = np.random.RandomState(1)
    print(f"{'product':60} {'kernels':>8} {'BLAS':>8} {'ratio':>6}  ({dtype}, us)")
    for graph, m, k, n, is_transposed in PRODUCTS:
        x = theano.shared(random.standard_normal((m, k)).astype(dtype))
        y = theano.shared(random.standard_normal((n, k) if is_transposed else (k, n)).astype(dtype))
        product = tensor.dot(x, y.T if is_transposed else y)
        # The result goes to a shared variable, so that no call allocates memory.
        z = theano.shared(np.zeros((m, n), dtype))
        function = theano.function([], updates=[(z, product)]).fn
        times: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for has_kernels, seconds in times.items():
                thunks_ext.enable_products(has_kernels)
                seconds.append(measure_shortest(function))
        kernels, blas = (statistics.median(times[key]) * 1e6 for key in (True, False))
        label = f"{graph}: {m} x {k} by {k} x {n}{', transposed' if is_transposed else ''}"
        print(f"{label:60} {kernels:8.1f} {blas:8.1f} {kernels / blas:6.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
