"""Run Theano's MPI ops and the MPI example of docs/clusters.md with the host's Open MPI.

The tests run in an environment with mpi4py: ./invoke build --stack=openblas --with=mpi4py
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CLUSTERS = Path(__file__).parents[2] / "docs" / "clusters.md"
# Each process sends a matrix filled with its rank to the next process, which doubles the matrix.
RING = """
import numpy as np, theano, theano.tensor as T
from mpi4py import MPI
from theano.gof.sched import sort_schedule_fn
from theano.tensor.io import mpi_cmps, recv, send
world = MPI.COMM_WORLD
mode = theano.Mode(linker=theano.OpWiseCLinker(schedule=sort_schedule_fn(*mpi_cmps)))
x = T.matrix()
sent = send(x, (world.rank + 1) % world.size, 11)
received = recv((2, 3), x.dtype, (world.rank - 1) % world.size, 11)
f = theano.function([x], [sent, 2 * received], mode=mode)
doubled = f(np.full((2, 3), world.rank))[1]
assert (doubled == 2 * ((world.rank - 1) % world.size)).all(), doubled
print(world.reduce([world.rank]) or "")
"""


def run(*command, **env):
    """Run a command with additional variables; return its output."""
    environ = {**os.environ, **env}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_processes(number, program):
    """Run a program in a number of MPI processes; return their output."""
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not on PATH (apt-get install openmpi-bin)")
    # Permit root, and more processes than CPUs; by default, Open MPI refuses both.
    env = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    env["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    return run("mpirun", "-n", str(number), sys.executable, "-c", program, **env)


def test_ops_send_and_receive():
    assert "[0, 1, 2, 3]" in run_processes(4, RING)


def test_processes_have_the_losses_of_one_process():
    """Data-parallel training in four processes has the losses of one process, which decrease."""
    program = CLUSTERS.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    single, parallel = (
        np.array([line.split() for line in run_processes(number, program).splitlines()], float)
        for number in (1, 4)
    )
    assert single.shape == (5, 2)
    assert (np.diff(single[:, 1]) < 0).all()
    np.testing.assert_allclose(parallel, single, rtol=1e-12)


def test_without_an_mpi_library_theano_works():
    program = "import theano.tensor.io; print(theano.tensor.io.mpi_enabled)"
    assert run(sys.executable, "-c", program, MPI4PY_LIBMPI="/none/libmpi.so") == "False\n"
