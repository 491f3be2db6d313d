"""Compare the driver calls of training steps with driver_calls.toml.

After the first steps, a step loads no module and allocates no memory. The host waits only while it
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
NO_GRAPHS = "gpuarray.graph_memory=0"
# Pairs of a graph, and whether it is replayed by CUDA graphs. The Neural Turing Machines are
# thorough tests, because their compilation for the emulated device takes minutes.
GRAPHS = [
    pytest.param(graph, replayed, marks=pytest.mark.thorough if graph.startswith("ntm") else ())
    for graph, table in TABLE.items()
    for replayed in ([False, True] if "replayed" in table else [False])
]


@pytest.fixture
def train(emulate, run, tmp_path):
    """Return a function that runs driver_calls.py on a graph, and returns the parsed output.

    The device is the emulated device, or a device whose kernels do not run.
    """

    def start(graph, flags="", emulated=True):
        compiler = f"{sys.prefix}/bin/{driver_calls.COMPILER}"
        counting = driver_calls.compile_library(compiler, tmp_path)
        device, idle = (emulate, ()) if emulated else (run, ("idle",))
        done = device(HERE / "driver_calls.py", graph, *idle, flags=flags, **counting)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return start


@pytest.mark.parametrize(("graph", "replayed"), GRAPHS)
def test_the_calls_of_a_step_equal_the_table(train, graph, replayed):
    """The losses equal the losses on the CPU within 1e-9."""
    result = train(graph, "" if replayed else NO_GRAPHS)
    print(f"{graph}: {result['calls']}, {result['ms']} ms with the emulated device")
    table = dict(TABLE[graph])
    calls = table.pop("replayed", {})
    assert result["calls"] == (calls if replayed else table)
    for group in ("synchronizations", "module loads", "allocations"):
        assert group not in result["calls"]
    np.testing.assert_allclose(result["losses"], train(graph, CPU)["losses"], rtol=1e-9)


@pytest.mark.parametrize("graph", ["lstm", "mlp"])
def test_the_host_launches_one_graph_per_step(train, graph):
    """Print the host's time for a step. The kernels do not run."""
    device = "device=cuda0,force_device=True,dnn.enabled=False"
    for flags, launches in ((device, 1), (f"{device},{NO_GRAPHS}", 0)):
        result = train(graph, flags, emulated=False)
        print(f"{graph}, {launches} CUDA graphs: the host takes {result['ms']} ms")
        assert result["calls"].get("graph launches", 0) == launches
