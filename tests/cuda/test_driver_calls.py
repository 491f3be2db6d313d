"""Compare the driver calls of training steps with driver_calls.toml.

From the third step on, a step loads no module and allocates no memory. The host waits only while it
copies results, and operands of ops that have no kernel, from the device.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import tomllib
from theano_fast.profiling import driver_calls

HERE = Path(__file__).parent
TABLE = tomllib.loads((HERE / "driver_calls.toml").read_text())
CPU = "device=cpu,force_device=False"
# The Neural Turing Machines are thorough tests, because their compilation for the emulated device
# takes minutes.
GRAPHS = [
    pytest.param(graph, marks=pytest.mark.thorough if graph.startswith("ntm") else ())
    for graph in TABLE
]


@pytest.fixture
def train(emulate, tmp_path):
    """Return a function that runs driver_calls.py on a graph, and returns the parsed output."""

    def start(graph, flags=""):
        compiler = f"{sys.prefix}/bin/{driver_calls.COMPILER}"
        counting = driver_calls.compile_library(compiler, tmp_path)
        done = emulate(HERE / "driver_calls.py", graph, flags=flags, **counting)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return start


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_calls_of_a_step_equal_the_table(train, graph):
    """The losses equal the losses on the CPU within 1e-9."""
    result = train(graph)
    print(f"{graph}: {result['calls']}, {result['ms']} ms with the emulated device")
    assert result["calls"] == TABLE[graph]
    for group in ("synchronizations", "module loads", "allocations"):
        assert group not in result["calls"]
    np.testing.assert_allclose(result["losses"], train(graph, CPU)["losses"], rtol=1e-9)
