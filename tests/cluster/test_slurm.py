"""Run the documented commands on a cluster, with Slurm's own daemons."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from math import cos, exp
from pathlib import Path
from typing import Any

import pytest

from builder.common import paths
from builder.environment import envs

Run = Callable[..., subprocess.CompletedProcess[str]]

# Prints the number of modules that it compiled for three functions of one module each, the seconds,
# the seconds of waiting for others, and the results.
PROGRAM = """
import json, os, sys, time
import theano, theano.tensor as tt
from theano.gof import lock_files
from theano.gof.cmodule import GCC_compiler
from theano.gof.graph_cache import claims
compiled, waited, write = [], [], GCC_compiler.write_source
def writing(*arguments, **others):
    compiled.append(write(*arguments, **others))
    return compiled[-1]
GCC_compiler.write_source = writing
def timed(wait):
    def waiting(*arguments):
        began = time.monotonic()
        try:
            return wait(*arguments)
        finally:
            waited.append(time.monotonic() - began)
    return waiting
claims.lock_byte, lock_files.acquire = timed(claims.lock_byte), timed(lock_files.acquire)
x = tt.dvector()
began = time.monotonic()
results = [theano.function([x], f(x))([1.0, 2.0]).tolist() for f in (
    lambda x: tt.exp(x) * x.sum(), lambda x: tt.cos(x) + x.max(), lambda x: x.prod() - tt.sqr(x))]
print(json.dumps({
    "compiled": len(compiled), "results": results, "threads": os.environ["OMP_NUM_THREADS"],
    "seconds": time.monotonic() - began, "waited": sum(waited)}))
"""
RIGHT = [3 * exp(1), 3 * exp(2), cos(1) + 2, cos(2) + 2, 1, -2]

# Runs before the program, in an array: the first task holds the lock and does not end.
HOLD = """
import os, time
if os.environ["SLURM_ARRAY_TASK_ID"] == "1":
    from theano.gof.compilelock import get_lock
    get_lock()
    print("locked", flush=True)
    {does}
    time.sleep(1000)
"""
# Runs before the program, to imitate a file system without locks.
REFUSED = """
import errno, fcntl, os
def refuse(*_):
    raise OSError(errno.{number}, os.strerror(errno.{number}))
fcntl.lockf = refuse
"""
# Runs after the program: prints the compiledir, and the directories of the loaded modules.
LOADED = """
with open("/proc/self/maps") as maps:
    files = {line.split(maxsplit=5)[-1].strip() for line in maps if ".so" in line}
base = os.path.dirname(theano.config.compiledir)
of = {os.path.relpath(file, base).split("/")[0] for file in files if file.startswith(base)}
print(json.dumps([os.path.basename(theano.config.compiledir), sorted(of)]))
"""
# Runs one command on a node whose processor has fewer instructions.
OLDER = """
test "$SLURMD_NODENAME" = node2 || exec "$@"
export NPY_DISABLE_CPU_FEATURES="AVX FMA3 AVX2 AVX512F AVX512_SKX"; exec "$@"
"""


@pytest.fixture
def program(shared: Path) -> Path:
    """Write a program into the shared home."""
    file = shared / "program.py"
    file.write_text(PROGRAM)
    return file


def read_outputs(shared: Path) -> list[dict[str, Any]]:
    """Read the output of an array's tasks; killed tasks have none."""
    texts = [file.read_text() for file in sorted(shared.glob("out-*"))]
    return [json.loads(line) for text in texts for line in text.splitlines() if line[:1] == "{"]


def submit_array(shared: Path, program: Path, tasks: int, *options: str) -> list[str]:
    words = ["sbatch", "--parsable", f"--array=1-{tasks}", f"--output={shared}/out-%a", *options]
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
    # One node lacks this compiler.
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
    wait(run, run(*submit_array(shared, program, 64)).stdout.strip())
    records = read_outputs(shared)
    assert len(records) == 64
    assert len({json.dumps(record["results"]) for record in records}) == 1
    alone = run("python", program, THEANO_FLAGS=f"base_compiledir={shared}/alone")
    single = json.loads(alone.stdout)
    assert sum(record["compiled"] for record in records) == single["compiled"] > 0
    assert records[0]["results"] == single["results"]
    # Do not compare with the time of a single task, which does not share the machine with 63 tasks.
    making = sum(record["seconds"] - record["waited"] for record in records if record["compiled"])
    assert max(record["waited"] for record in records) < 2 * making


def test_nodes_of_two_kinds_share_a_home_but_no_module(
    run: Run, shared: Path, program: Path
) -> None:
    program.write_text(PROGRAM + LOADED)
    older = shared / "older"
    older.write_text(OLDER)
    start = ["srun", "-N2", "-w", "node1,node2", "-l", "sh", older, "python", program]
    for compiles in (True, False):
        done = run(*start)
        assert done.returncode == 0, done.stderr
        # The results and the loaded modules of each node.
        lines = [line.split(": ", 1) for line in done.stdout.splitlines()]
        documents = [json.loads(line) for _, line in sorted(lines, key=lambda words: words[0])]
        assert [type(document) for document in documents] == [dict, list] * 2
        first, second = documents[::2]
        assert first["results"] == second["results"]
        numbers = [number for result in first["results"] for number in result]
        assert numbers == pytest.approx(RIGHT)
        # The older node has no shipped modules, and compiles more modules.
        assert bool(first["compiled"]) == bool(second["compiled"]) == compiles
        (here, loaded), (there, loaded_there) = documents[1::2]
        assert here != there
        assert (loaded, loaded_there) == ([here], [there])


def test_an_array_with_killed_tasks(run: Run, shared: Path, program: Path) -> None:
    job = run(*submit_array(shared, program, 16)).stdout.strip()
    time.sleep(2)
    for task in (1, 2, 5):
        run("scancel", "--signal=KILL", f"{job}_{task}")
    wait(run, job)
    records = read_outputs(shared)
    assert len(records) >= 13
    assert len({json.dumps(record["results"]) for record in records}) == 1


@pytest.mark.parametrize("number", ["ENOLCK", "ENOSYS"])
def test_an_array_on_a_file_system_without_locks(
    run: Run, shared: Path, program: Path, number: str
) -> None:
    program.write_text(REFUSED.format(number=number) + PROGRAM)
    for _ in range(2):
        wait(run, run(*submit_array(shared, program, 4)).stdout.strip())
        records = read_outputs(shared)
        assert len(records) == 4
        assert len({json.dumps(record["results"]) for record in records}) == 1
    # The results of the second array.
    assert [record["compiled"] for record in records] == [0] * 4


@pytest.mark.parametrize(
    ("why", "does"),
    [
        ("exceeded memory limit", 'taken = bytearray(b"x") * (2 << 30)'),
        ("DUE TO TIME LIMIT", ""),
        ("CANCELLED", ""),
    ],
)
def test_an_array_whose_locking_task_is_ended(
    run: Run, shared: Path, program: Path, why: str, does: str
) -> None:
    program.write_text(HOLD.format(does=does) + PROGRAM)
    job = run(*submit_array(shared, program, 4, "--mem=1500")).stdout.strip()
    first = shared / "out-1"
    while not (first.exists() and "locked" in first.read_text()):
        time.sleep(0.2)
    if "TIME" in why:
        # Slurm's time limits are in minutes.
        run("scontrol", "update", f"jobid={job}_1", "endtime=now+1")
    elif not does:
        run("scancel", f"{job}_1")
    wait(run, job)
    assert why in first.read_text()
    records = read_outputs(shared)
    assert len(records) == 3
    assert len({json.dumps(record["results"]) for record in records}) == 1


def test_an_array_on_a_full_file_system(run: Run, shared: Path, program: Path) -> None:
    small = shared.parent / "small"
    assert run("cp", "/dev/zero", small).returncode == 1
    flags = f"base_compiledir={small}/compiled"
    wait(run, run(*submit_array(shared, program, 4), THEANO_FLAGS=flags).stdout.strip())
    records = read_outputs(shared)
    assert len(records) == 4
    assert len({json.dumps(record["results"]) for record in records}) == 1
    assert "No space left on device" in (shared / "out-1").read_text()


def test_an_array_with_a_warm_cache_compiles_nothing(run: Run, shared: Path, program: Path) -> None:
    warmed = run("srun", "-n1", "theano-fast", "cache", "warm", program)
    assert warmed.returncode == 0, warmed.stderr
    wait(run, run(*submit_array(shared, program, 8)).stdout.strip())
    assert [record["compiled"] for record in read_outputs(shared)] == [0] * 8


def parse_losses(output: str) -> list[float]:
    return [float(line.split()[1]) for line in output.splitlines()]


@pytest.mark.thorough
def test_processes_on_all_nodes_have_the_losses_of_one_process(run: Run, shared: Path) -> None:
    if envs.read_installed_digest("openblas+mpi4py") is None:
        pytest.skip("not built: ./invoke build --stack=openblas --with=mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("no Open MPI (apt-get install openmpi-bin)")
    start = ["srun", "--mpi=pmix", "-N4", "-n4"]
    if (plain := run(*start, "true")).returncode != 0:
        pytest.skip(f"Slurm starts no MPI here (apt-get install libpmix-dev): {plain.stderr}")
    page = (paths.ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    program = shared / "train.py"
    program.write_text(page.partition("```python\n")[2].partition("```")[0])
    python = paths.ENVIRONMENTS / "openblas+mpi4py" / "bin" / "python"
    one, four = run(python, program), run(*start, python, program)
    assert len(parse_losses(one.stdout)) == 5, one.stderr
    assert parse_losses(four.stdout) == pytest.approx(parse_losses(one.stdout), rel=1e-12), (
        four.stderr
    )
