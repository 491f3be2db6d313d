"""Check that the import of mpi4py.MPI raises ImportError if there is no MPI library."""

import os

os.environ["MPI4PY_LIBMPI"] = "/none/libmpi.so"
import mpi4py

try:
    from mpi4py import MPI
except ImportError as error:
    assert "cannot load MPI library" in str(error), error
else:
    raise SystemExit(f"mpi4py {mpi4py.__version__} imports {MPI} without an MPI library")
