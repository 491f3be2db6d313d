"""Run verification, MPI, and arrays of tasks with one compile cache on a Slurm cluster."""

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

# Compile three functions, which need one module each. Print JSON: the number of modules that this
# process compiled, the results, the threads, the total seconds, and the seconds during which the
# process waited for locks of other processes.
PROGRAM = """
import json, os, sys, time
import theano, theano.tensor as tt
from theano.gof import background_compilation, lock_files
from theano.gof.cmodule import GCC_compiler
from theano.gof.graph_cache import claims
compiled, waited, write = [], [], GCC_compiler.write_source
def write_and_count(*arguments, **keywords):
    compiled.append(write(*arguments, **keywords))
    return compiled[-1]
GCC_compiler.write_source = write_and_count
def measure(wait):
    def wait_and_measure(*arguments):
        start = time.monotonic()
        try:
            return wait(*arguments)
        finally:
            waited.append(time.monotonic() - start)
    return wait_and_measure
claims.lock_byte, lock_files.acquire = measure(claims.lock_byte), measure(lock_files.acquire)
x = tt.dvector()
start = time.monotonic()
results = [theano.function([x], f(x))([1.0, 2.0]).tolist() for f in (
    lambda x: tt.exp(x) * x.sum(), lambda x: tt.cos(x) + x.max(), lambda x: x.prod() - tt.sqr(x))]
background_compilation.compiler.finish()
print(json.dumps({
    "compiled": len(compiled), "results": results, "threads": os.environ["OMP_NUM_THREADS"],
    "seconds": time.monotonic() - start, "waited": sum(waited)}))
"""
# The results of the three functions.
EXPECTED = [3 * exp(1), 3 * exp(2), cos(1) + 2, cos(2) + 2, 1, -2]

# This code runs before PROGRAM, in an array. The first task holds the lock of the compiledir, runs
# the statement {action}, and sleeps until it is killed.
HOLD = """
import os, time
if os.environ["SLURM_ARRAY_TASK_ID"] == "1":
    from theano.gof.compilelock import get_lock
    get_lock()
    print("locked", flush=True)
    {action}
    time.sleep(1000)
"""
# This code runs before PROGRAM. It makes all locks fail, as on a file system without locks.
REFUSED = """
import errno, fcntl, os
def refuse(*_):
    raise OSError(errno.{number}, os.strerror(errno.{number}))
fcntl.lockf = refuse
"""
# This code runs after PROGRAM. It prints the name of the compiledir, and the names of the
# compiledirs from which the process has loaded modules.
LOADED = """
with open("/proc/self/maps") as maps:
    files = {line.split(maxsplit=5)[-1].strip() for line in maps if ".so" in line}
base = os.path.dirname(theano.config.compiledir)
loaded = {os.path.relpath(file, base).split("/")[0] for file in files if file.startswith(base)}
print(json.dumps([os.path.basename(theano.config.compiledir), sorted(loaded)]))
"""
# Run a command. On node2, hide vector instructions, as on an older processor.
OLDER = """
test "$SLURMD_NODENAME" = node2 || exec "$@"
export NPY_DISABLE_CPU_FEATURES="AVX FMA3 AVX2 AVX512F AVX512_SKX"; exec "$@"
"""


@pytest.fixture
def program(shared: Path) -> Path:
    """Write PROGRAM to a file in the jobs' home directory."""
    file = shared / "program.py"
    file.write_text(PROGRAM)
    return file


def read_outputs(shared: Path) -> list[dict[str, Any]]:
    """Return the JSON objects that the tasks of an array printed; killed tasks printed none."""
    texts = [file.read_text() for file in sorted(shared.glob("out-*"))]
    return [json.loads(line) for text in texts for line in text.splitlines() if line[:1] == "{"]


def make_array_command(shared: Path, program: Path, tasks: int, *options: str) -> list[str]:
    """Return the command that submits an array of tasks, which run the program."""
    command = ["sbatch", "--parsable", f"--array=1-{tasks}", f"--output={shared}/out-%a", *options]
    return [*command, f"--wrap=python {program}"]


def wait_for_job(run: Run, job: str) -> None:
    """Wait until Slurm's queue does not contain a job."""
    for _ in range(500):
        if not run("squeue", "-h", "-j", job).stdout.strip():
            return
        time.sleep(1)
    pytest.fail("the array did not end")


def test_all_nodes_of_a_job_are_verified(run: Run, shared: Path) -> None:
    """Each node writes a line and a report with its name; a broken node fails the job."""
    verify = ["srun", "-N4", "theano-fast", "verify", "--check", "compiler", "threads"]
    done = run(*verify, "--json", shared / "report.json")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert [line.partition(":")[0] for line in lines] == ["node1", "node2", "node3", "node4"]
    assert all("openblas: verified (2 passed" in line for line in lines)
    for number in range(1, 5):
        assert json.loads((shared / f"report-node{number}.json").read_text())["verified"]
    # On node3, the compiler is missing.
    break_node3 = (
        'test "$SLURMD_NODENAME" = node3 && export THEANO_FLAGS=cxx=/nowhere/g++; exec "$0" "$@"'
    )
    command = run("sh", "-c", "command -v theano-fast").stdout.strip()
    broken = run("srun", "-N4", "sh", "-c", break_node3, command, "verify", "--check", "compiler")
    assert broken.returncode != 0
    assert "node3: compiler failed" in broken.stdout
    assert broken.stdout.count("openblas: verified") == 3


@pytest.mark.parametrize("cpus", [1, 2])
def test_threads_follow_the_cpus_of_a_task(run: Run, program: Path, cpus: int) -> None:
    done = run("srun", f"--cpus-per-task={cpus}", "python", program)
    assert json.loads(done.stdout)["threads"] == str(cpus), done.stderr


def test_an_array_compiles_each_module_once(run: Run, shared: Path, program: Path) -> None:
    """64 tasks together compile as many modules as one process, and have the same results."""
    wait_for_job(run, run(*make_array_command(shared, program, 64)).stdout.strip())
    records = read_outputs(shared)
    assert len(records) == 64
    assert len({json.dumps(record["results"]) for record in records}) == 1
    done = run("python", program, THEANO_FLAGS=f"base_compiledir={shared}/single")
    single = json.loads(done.stdout)
    assert sum(record["compiled"] for record in records) == single["compiled"] > 0
    assert records[0]["results"] == single["results"]
    # No task waits much longer than the compilation takes. The time of the single process is not
    # the limit, because that process does not share the host with 63 tasks.
    compile_seconds = sum(
        record["seconds"] - record["waited"] for record in records if record["compiled"]
    )
    assert max(record["waited"] for record in records) < 2 * compile_seconds


def test_nodes_with_different_processors_share_no_modules(
    run: Run, shared: Path, program: Path
) -> None:
    """Two nodes with one home directory use different compiledirs, and load only their modules."""
    program.write_text(PROGRAM + LOADED)
    older = shared / "older"
    older.write_text(OLDER)
    start = ["srun", "-N2", "-w", "node1,node2", "-l", "sh", older, "python", program]
    for compiles in (True, False):
        done = run(*start)
        assert done.returncode == 0, done.stderr
        # Each node prints two lines: the results, and the compiledirs.
        lines = [line.split(": ", 1) for line in done.stdout.splitlines()]
        documents = [json.loads(line) for _, line in sorted(lines, key=lambda words: words[0])]
        assert [type(document) for document in documents] == [dict, list] * 2
        first, second = documents[::2]
        assert first["results"] == second["results"]
        numbers = [number for result in first["results"] for number in result]
        assert numbers == pytest.approx(EXPECTED)
        # Compare only whether the nodes compile: the older node compiles more modules, because the
        # environment ships no modules for it.
        assert bool(first["compiled"]) == bool(second["compiled"]) == compiles
        (compiledir, loaded), (older_compiledir, loaded_by_older) = documents[1::2]
        assert compiledir != older_compiledir
        assert (loaded, loaded_by_older) == ([compiledir], [older_compiledir])


def test_an_array_survives_killed_tasks(run: Run, shared: Path, program: Path) -> None:
    """After SIGKILL of three of 16 tasks, the other tasks end with equal results."""
    job = run(*make_array_command(shared, program, 16)).stdout.strip()
    time.sleep(2)
    for task in (1, 2, 5):
        run("scancel", "--signal=KILL", f"{job}_{task}")
    wait_for_job(run, job)
    records = read_outputs(shared)
    assert len(records) >= 13
    assert len({json.dumps(record["results"]) for record in records}) == 1


@pytest.mark.parametrize("number", ["ENOLCK", "ENOSYS"])
def test_an_array_runs_on_a_file_system_without_locks(
    run: Run, shared: Path, program: Path, number: str
) -> None:
    """All tasks have equal results, and a second array compiles nothing."""
    program.write_text(REFUSED.format(number=number) + PROGRAM)
    for _ in range(2):
        wait_for_job(run, run(*make_array_command(shared, program, 4)).stdout.strip())
        records = read_outputs(shared)
        assert len(records) == 4
        assert len({json.dumps(record["results"]) for record in records}) == 1
    # The second array overwrote the output of the first array.
    assert [record["compiled"] for record in records] == [0] * 4


@pytest.mark.parametrize(
    ("reason", "action"),
    [
        ("exceeded memory limit", 'memory = bytearray(b"x") * (2 << 30)'),
        ("DUE TO TIME LIMIT", ""),
        ("CANCELLED", ""),
    ],
)
def test_the_end_of_a_task_releases_its_lock(
    run: Run, shared: Path, program: Path, reason: str, action: str
) -> None:
    """If Slurm ends the task that holds the lock, the other tasks of the array continue."""
    program.write_text(HOLD.format(action=action) + PROGRAM)
    job = run(*make_array_command(shared, program, 4, "--mem=1500")).stdout.strip()
    first = shared / "out-1"
    while not (first.exists() and "locked" in first.read_text()):
        time.sleep(0.2)
    if "TIME" in reason:
        # Set the time of the task's end, because Slurm's time limits are in minutes.
        run("scontrol", "update", f"jobid={job}_1", "endtime=now+1")
    elif not action:
        run("scancel", f"{job}_1")
    wait_for_job(run, job)
    assert reason in first.read_text()
    records = read_outputs(shared)
    assert len(records) == 3
    assert len({json.dumps(record["results"]) for record in records}) == 1


def test_an_array_computes_on_a_full_file_system(run: Run, shared: Path, program: Path) -> None:
    """All tasks have equal results, and a compiling task reports that no space is left."""
    small = shared.parent / "small"
    assert run("cp", "/dev/zero", small).returncode == 1
    flags = f"base_compiledir={small}/compiled"
    wait_for_job(
        run, run(*make_array_command(shared, program, 4), THEANO_FLAGS=flags).stdout.strip()
    )
    records = read_outputs(shared)
    assert len(records) == 4
    assert len({json.dumps(record["results"]) for record in records}) == 1
    outputs = [path.read_text() for path in shared.glob("out-*")]
    assert any("No space left on device" in output for output in outputs)


def test_an_array_with_a_warm_cache_compiles_nothing(run: Run, shared: Path, program: Path) -> None:
    warmed = run("srun", "-n1", "theano-fast", "cache", "warm", program)
    assert warmed.returncode == 0, warmed.stderr
    wait_for_job(run, run(*make_array_command(shared, program, 8)).stdout.strip())
    assert [record["compiled"] for record in read_outputs(shared)] == [0] * 8


def parse_losses(output: str) -> list[float]:
    """Return the second word of each line."""
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
    single, parallel = run(python, program), run(*start, python, program)
    expected = parse_losses(single.stdout)
    assert len(expected) == 5, single.stderr
    assert parse_losses(parallel.stdout) == pytest.approx(expected, rel=1e-12), parallel.stderr
