"""Choice of the number of threads that share large loops and products (thunks/threads.h).

Importing this module sets the number, and chooses whether kernels compute matrix products.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from theano import config
from theano.tensor import thunks_ext

# Environment variables with which users limit the threads of a BLAS.
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def count_threads(environ: Mapping[str, str]) -> int:
    """Return the least limit in VARIABLES, or the number of CPUs that this process may use."""
    # OMP_NUM_THREADS may be a list, with a number for each level of nested loops. Use the first.
    limits = (environ.get(name, "").partition(",")[0] for name in VARIABLES)
    return min(
        (int(limit) for limit in limits if limit.isdecimal() and int(limit)),
        default=len(os.sched_getaffinity(0)),
    )


thunks_ext.set_threads(config.elemwise.threads or count_threads(os.environ))
# Whether kernels compute products (theano_products.h).
HAS_KERNELS = thunks_ext.enable_products(config.blas.kernels)
