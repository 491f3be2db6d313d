"""Run Theano's MPI ops and the example of docs/clusters.md on this machine's MPI.

It runs in an environment with mpi4py: ./invoke build --stack=openblas --with=mpi4py
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CLUSTERS = Path(__file__).parents[2] / "docs" / "clusters.md"
# Each process sends its value to the next process, which doubles it.
RING = """
import numpy as np, theano, theano.tensor as T
from mpi4py import MPI
from theano.gof.sched import sort_schedule_fn
from theano.tensor.io import mpi_cmps, recv, send
world = MPI.COMM_WORLD
mode = theano.Mode(linker=theano.OpWiseCLinker(schedule=sort_schedule_fn(*mpi_cmps)))
x = T.matrix()
sent = send(x, (world.rank + 1) % world.size, 11)
got = recv((2, 3), x.dtype, (world.rank - 1) % world.size, 11)
f = theano.function([x], [sent, 2 * got], mode=mode)
found = f(np.full((2, 3), world.rank))[1]
assert (found == 2 * ((world.rank - 1) % world.size)).all(), found
print(world.reduce([world.rank]) or "")
"""


def run(*command, **env):
    environ = {**os.environ, **env}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(number, program):
    """Run a program in a number of processes; return its output."""
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not on PATH (apt-get install openmpi-bin)")
    # Open MPI needs options for root and for more processes than CPUs.
    env = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    env["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    return run("mpirun", "-n", str(number), sys.executable, "-c", program, **env)


def test_ops_send_and_receive():
    assert "[0, 1, 2, 3]" in start(4, RING)


def test_processes_have_the_losses_of_one_process():
    program = CLUSTERS.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    one, four = (
        np.array([line.split() for line in start(number, program).splitlines()], float)
        for number in (1, 4)
    )
    assert one.shape == (5, 2)
    assert (np.diff(one[:, 1]) < 0).all()
    np.testing.assert_allclose(four, one, rtol=1e-12)


def test_without_an_mpi_library_theano_works():
    program = "import theano.tensor.io; print(theano.tensor.io.mpi_enabled)"
    assert run(sys.executable, "-c", program, MPI4PY_LIBMPI="/none/libmpi.so") == "False\n"
