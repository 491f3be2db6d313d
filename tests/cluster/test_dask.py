"""Run the Dask example of docs/clusters.md: Slurm starts the workers on separate nodes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.common import paths

Run = Callable[..., subprocess.CompletedProcess[str]]

# This variable names a directory with the packages, which the environment's pip installs:
# pip install --target=DIRECTORY joblib distributed dask-jobqueue
# DIRECTORY must not be in /tmp, because each node has its own /tmp.
VARIABLE = "THEANO_FAST_JOBLIB_AND_DASK"

# Before a worker gets Theano's function, it runs `watch`, which counts the modules that the process
# compiles. At the end, the worker runs `report`, which returns the worker's node and the count.
WATCH = """
import json


def watch():
    from theano.gof.compilation import CompilationPool

    start, CompilationPool.compiled = CompilationPool.start, 0

    def count_and_start(self, modules):
        CompilationPool.compiled += len(modules)
        return start(self, modules)

    CompilationPool.start = count_and_start


def report():
    from theano.gof.compilation import CompilationPool

    return os.environ["SLURMD_NODENAME"], CompilationPool.compiled


"""
# The calls of the example without Dask, in one process.
LOOP = """
for rate in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
    print(*fit(step, rate))
"""


@pytest.fixture
def packages(run: Run) -> str:
    """Return the directory with the packages of VARIABLE."""
    directory = os.environ.get(VARIABLE, "")
    if run("srun", "python", "-c", "import dask_jobqueue", PYTHONPATH=directory).returncode != 0:
        pytest.skip(
            "nodes have no dask-jobqueue:"
            " pip install --target=DIRECTORY joblib distributed dask-jobqueue,"
            f" with the environment's pip, and set {VARIABLE}=DIRECTORY"
        )
    return directory


@pytest.fixture
def example() -> tuple[str, str]:
    """Return code of docs/clusters.md: the function's code, and the code that uses Slurm."""
    page = (paths.ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    section = page.partition("\n## Many tasks of one program\n")[2]
    joblib, _, slurm = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return joblib[: joblib.index("if __name__")], slurm


def parse_results(output: str) -> list[tuple[float, str]]:
    """Return the loss and the number of threads of each line that the example prints."""
    lines = [line.split() for line in output.splitlines() if line[:1] != "["]
    return [(float(loss), threads) for loss, threads in lines]


@pytest.mark.parametrize(
    "job",
    [
        # The workers' compiledir differs from the compiledir of the process that sends the
        # function, as on nodes with another kind of processor.
        (2, "cores=1", ["unset THEANO_FLAGS"]),
        # The workers share the compiledir of the process that sends the function.
        (4, "cores=2, processes=2", ["export OMP_NUM_THREADS=1"]),
    ],
    ids=["one worker of all", "none"],
)
def test_one_worker_or_none_compiles(
    run: Run, shared: Path, packages: str, example: tuple[str, str], job: tuple[int, str, list[str]]
) -> None:
    """If the workers' compiledir lacks the function's modules, only one worker compiles them.

    The parameter ``job`` is the number of workers, dask-jobqueue's cores and processes, and the
    commands before a worker.
    """
    function_code, slurm_code = example
    workers, cores, prologue = job
    loop = shared / "loop.py"
    loop.write_text(function_code + LOOP)
    environ = {"PYTHONPATH": packages, "THEANO_FLAGS": f"base_compiledir={shared}/own"}
    single = run("python", loop, **environ)
    assert single.returncode == 0, single.stderr
    compiles = "unset THEANO_FLAGS" in prologue
    if not compiles:
        del environ["THEANO_FLAGS"]
    slurm_code = slurm_code.replace("cores=1", cores)
    # Limit the wait for workers to 120 s; the example has no limit.
    slurm_code = slurm_code.replace("workers(2)", f"workers({workers}, 120)")
    indent = " " * 8
    scatter = f"{indent}remote_step = "
    slurm_code = slurm_code.replace(scatter, f"{indent}client.run(watch)\n{scatter}")
    slurm_code += f"{indent}print(json.dumps(list(client.run(report).values())))\n"
    program = shared / "program.py"
    program.write_text(function_code + WATCH + slurm_code)
    # Each job gets its own node.
    directives = json.dumps(["--exclusive", f"--output={shared}/worker-%j"])
    environ["DASK_JOBQUEUE__SLURM__JOB_EXTRA_DIRECTIVES"] = directives
    environ["DASK_JOBQUEUE__SLURM__JOB_SCRIPT_PROLOGUE"] = json.dumps(prologue)
    done = run("python", program, **environ)
    assert done.returncode == 0, done.stderr
    expected, actual = parse_results(single.stdout), parse_results(done.stdout)
    assert len(actual) == 6
    assert [loss for loss, _ in actual] == pytest.approx([loss for loss, _ in expected], rel=1e-9)
    assert {threads for _, threads in actual} == {"1"}
    reports = json.loads(done.stdout.splitlines()[-1])
    assert len({node for node, _ in reports}) == 2
    *smaller_counts, largest_count = sorted(count for _, count in reports)
    assert smaller_counts == [0] * (workers - 1)
    assert (largest_count > 0) == compiles
