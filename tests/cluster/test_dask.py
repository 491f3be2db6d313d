"""Run docs/clusters.md's example with Dask, whose workers Slurm starts on separate nodes."""

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

# Install with the environment's pip: pip install --target=DIRECTORY joblib distributed
# dask-jobqueue. Do not use /tmp, because each node has its own /tmp.
VARIABLE = "THEANO_FAST_JOBLIB_AND_DASK"

# The code that a worker runs before it gets the function, and the code that it runs afterwards.
WATCH = """
import json


def watch():
    from theano.gof.compilation import CompilationPool

    start, CompilationPool.compiled = CompilationPool.start, 0

    def compiling(self, modules):
        CompilationPool.compiled += len(modules)
        return start(self, modules)

    CompilationPool.start = compiling


def watched():
    from theano.gof.compilation import CompilationPool

    return os.environ["SLURMD_NODENAME"], CompilationPool.compiled


"""
PLAIN = """
for rate in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
    print(*fit(step, rate))
"""


@pytest.fixture
def packages(run: Run) -> str:
    """Return the directory of the installed packages."""
    directory = os.environ.get(VARIABLE, "")
    if run("srun", "python", "-c", "import dask_jobqueue", PYTHONPATH=directory).returncode != 0:
        pytest.skip(
            "nodes have no dask-jobqueue:"
            " pip install --target=DIRECTORY joblib distributed dask-jobqueue,"
            f" with the environment's pip, and name it in {VARIABLE}"
        )
    return directory


@pytest.fixture
def example() -> tuple[str, str]:
    """Return the example's code for the function, its calls and the workers."""
    page = (paths.ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    section = page.partition("\n## Many tasks of one program\n")[2]
    joblib, _, slurm = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return joblib[: joblib.index("if __name__")], slurm


def parse_results(output: str) -> list[tuple[float, str]]:
    lines = [line.split() for line in output.splitlines() if line[:1] != "["]
    return [(float(loss), threads) for loss, threads in lines]


@pytest.mark.parametrize(
    "job",
    [
        # The process that sends the function has another cache, as with another kind of processor.
        (2, "cores=1", ["unset THEANO_FLAGS"]),
        (4, "cores=2, processes=2", ["export OMP_NUM_THREADS=1"]),
    ],
    ids=["one worker of all", "none"],
)
def test_one_worker_or_none_compiles(
    run: Run, shared: Path, packages: str, example: tuple[str, str], job: tuple[int, str, list[str]]
) -> None:
    made, slurm = example
    workers, cores, prologue = job
    one = shared / "one.py"
    one.write_text(made + PLAIN)
    environ = {"PYTHONPATH": packages, "THEANO_FLAGS": f"base_compiledir={shared}/own"}
    alone = run("python", one, **environ)
    assert alone.returncode == 0, alone.stderr
    compiles = "unset THEANO_FLAGS" in prologue
    if not compiles:
        del environ["THEANO_FLAGS"]
    # Without a limit in seconds, the example waits forever.
    slurm = slurm.replace("cores=1", cores).replace("workers(2)", f"workers({workers}, 120)")
    sent = " " * 8 + "sent = "
    slurm = slurm.replace(sent, f"{sent[:8]}client.run(watch)\n{sent}")
    slurm += f"{sent[:8]}print(json.dumps(list(client.run(watched).values())))\n"
    program = shared / "program.py"
    program.write_text(made + WATCH + slurm)
    # Each job gets its own node.
    directives = json.dumps(["--exclusive", f"--output={shared}/worker-%j"])
    environ["DASK_JOBQUEUE__SLURM__JOB_EXTRA_DIRECTIVES"] = directives
    environ["DASK_JOBQUEUE__SLURM__JOB_SCRIPT_PROLOGUE"] = json.dumps(prologue)
    done = run("python", program, **environ)
    assert done.returncode == 0, done.stderr
    expected, actual = parse_results(alone.stdout), parse_results(done.stdout)
    assert len(actual) == 6
    assert [loss for loss, _ in actual] == pytest.approx([loss for loss, _ in expected], rel=1e-9)
    assert {threads for _, threads in actual} == {"1"}
    record = json.loads(done.stdout.splitlines()[-1])
    assert len({node for node, _ in record}) == 2
    *others, most = sorted(number for _, number in record)
    assert others == [0] * (workers - 1)
    assert (most > 0) == compiles
