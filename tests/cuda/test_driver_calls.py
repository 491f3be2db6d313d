"""Training steps of graphs of bench/ call the driver as often as driver_calls.toml has it.

After the second step, a step loads no module and allocates no memory, and the host waits only for
results, and for the operands of ops without a kernel.
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


@pytest.fixture
def train(emulate, tmp_path):
    """Return a function that trains a graph, and returns the output of driver_calls.py."""

    def start(graph, flags=""):
        compiler = f"{sys.prefix}/bin/{driver_calls.COMPILER}"
        counting = driver_calls.compile_library(compiler, tmp_path)
        done = emulate(HERE / "driver_calls.py", graph, flags=flags, **counting)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return start


@pytest.mark.parametrize("graph", TABLE)
def test_a_step_calls_the_driver_as_often_as_the_table_has_it(train, graph):
    result = train(graph)
    print(f"{graph}: {result['calls']}, {result['ms']} ms with the emulated device")
    assert result["calls"] == TABLE[graph]
    for group in ("synchronizations", "module loads", "allocations"):
        assert group not in result["calls"]
    np.testing.assert_allclose(result["losses"], train(graph, CPU)["losses"], rtol=1e-9)
