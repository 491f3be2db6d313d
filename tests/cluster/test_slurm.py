"""What a cluster's user types, with Slurm's own daemons."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

# Tells how many modules it compiled for three functions, and what they compute.
PROGRAM = """
import json, os
import theano, theano.tensor as tt
from theano.gof.compilation import CompilationPool
compiled, start = [], CompilationPool.start
def compiling(self, modules):
    compiled.extend(modules)
    return start(self, modules)
CompilationPool.start = compiling
x = tt.dvector()
results = [theano.function([x], f(x))([1.0, 2.0]).tolist() for f in (
    lambda x: tt.exp(x) * x.sum(), lambda x: tt.cos(x) + x.max(), lambda x: x.prod() - tt.sqr(x))]
print(json.dumps({
    "compiled": len(compiled), "results": results, "threads": os.environ["OMP_NUM_THREADS"]}))
"""


@pytest.fixture
def program(shared: Path) -> Path:
    """A program in the shared home."""
    file = shared / "program.py"
    file.write_text(PROGRAM)
    return file


def outputs(shared: Path) -> list[dict[str, Any]]:
    """What the tasks of an array told; of those that were killed nothing."""
    texts = [file.read_text() for file in sorted(shared.glob("out-*"))]
    return [json.loads(line) for text in texts for line in text.splitlines() if line[0] == "{"]


def array(shared: Path, program: Path, tasks: int) -> list[str]:
    words = ["sbatch", "--parsable", f"--array=1-{tasks}", f"--output={shared}/out-%a"]
    return [*words, f"--wrap=python {program}"]


def wait(run: Run, job: str) -> None:
    for _ in range(500):
        if not run("squeue", "-h", "-j", job).stdout.strip():
            return
        time.sleep(1)
    pytest.fail("the array did not end")


def test_all_nodes_verify_in_one_report(run: Run, shared: Path) -> None:
    verify = ["srun", "-N4", "theano-fast", "verify", "--check", "compiler", "threads"]
    done = run(*verify, "--json", shared / "report.json")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert [line.partition(":")[0] for line in lines] == ["node1", "node2", "node3", "node4"]
    assert all("openblas: verified (2 passed" in line for line in lines)
    for number in range(1, 5):
        assert json.loads((shared / f"report-node{number}.json").read_text())["verified"]
    # A compiler that one node has not got.
    lacking = (
        'test "$SLURMD_NODENAME" = node3 && export THEANO_FLAGS=cxx=/nowhere/g++; exec "$0" "$@"'
    )
    command = run("sh", "-c", "command -v theano-fast").stdout.strip()
    broken = run("srun", "-N4", "sh", "-c", lacking, command, "verify", "--check", "compiler")
    assert broken.returncode != 0
    assert "node3: compiler failed" in broken.stdout
    assert broken.stdout.count("openblas: verified") == 3


@pytest.mark.parametrize("cpus", [1, 2])
def test_threads_follow_the_cpus_of_a_task(run: Run, program: Path, cpus: int) -> None:
    done = run("srun", f"--cpus-per-task={cpus}", "python", program)
    assert json.loads(done.stdout)["threads"] == str(cpus), done.stderr


def test_an_array_compiles_everything_once(run: Run, shared: Path, program: Path) -> None:
    started = run(*array(shared, program, 64))
    wait(run, started.stdout.strip())
    told = outputs(shared)
    assert len(told) == 64
    assert len({json.dumps(each["results"]) for each in told}) == 1
    alone = run("python", program, THEANO_FLAGS=f"base_compiledir={shared}/alone")
    single = json.loads(alone.stdout)
    assert sum(each["compiled"] for each in told) == single["compiled"] > 0
    assert told[0]["results"] == single["results"]


def test_an_array_of_which_some_are_killed(run: Run, shared: Path, program: Path) -> None:
    job = run(*array(shared, program, 16)).stdout.strip()
    time.sleep(2)
    for task in (1, 2, 5):
        run("scancel", "--signal=KILL", f"{job}_{task}")
    wait(run, job)
    told = outputs(shared)
    assert len(told) >= 13
    assert len({json.dumps(each["results"]) for each in told}) == 1


def test_a_warm_cache_is_all_that_an_array_needs(run: Run, shared: Path, program: Path) -> None:
    warmed = run("srun", "-n1", "theano-fast", "cache", "warm", program)
    assert warmed.returncode == 0, warmed.stderr
    wait(run, run(*array(shared, program, 8)).stdout.strip())
    assert [each["compiled"] for each in outputs(shared)] == [0] * 8
