"""The number of threads that share the loops of a large Elemwise (thunks/threads.h)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from theano import config
from theano.tensor import thunks_ext

# Users limit the threads of a BLAS by these variables.
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def count_threads(environ: Mapping[str, str]) -> int:
    """Return the least limit in the environment, or the number of this process' CPUs."""
    # OMP_NUM_THREADS may list a number for each level of nested loops.
    limits = (environ.get(name, "").partition(",")[0] for name in VARIABLES)
    return min(
        (int(limit) for limit in limits if limit.isdecimal() and int(limit)),
        default=len(os.sched_getaffinity(0)),
    )


thunks_ext.set_threads(config.elemwise.threads or count_threads(os.environ))
