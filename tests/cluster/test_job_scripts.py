"""Submit the job scripts of docs/clusters.md, unchanged, to the cluster."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.common import paths

Run = Callable[..., subprocess.CompletedProcess[str]]

# Print the number of threads and the arguments. The job scripts run this program as train.py.
PROGRAM = """
import os, sys
import theano
print(os.environ["OMP_NUM_THREADS"], *sys.argv[1:])
"""


@pytest.fixture
def scripts() -> list[str]:
    """Return the job scripts of the page: for one job, and for an array of jobs."""
    page = (paths.ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(#!/bin/bash\n.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def submit(run: Run, shared: Path, prefix: Path) -> Callable[[str], list[str]]:
    """Return a function that submits a job script, waits for its end, and returns its output.

    The output is the sorted list of all lines. The script's directory contains the environment.
    """
    (shared / "theano-fast-openblas").symlink_to(prefix)
    (shared / "train.py").write_text(PROGRAM, encoding="utf-8")

    def submit_and_wait(script: str) -> list[str]:
        (shared / "job.sh").write_text(script, encoding="utf-8")
        done = run("sbatch", "--wait", f"--chdir={shared}", shared / "job.sh")
        outputs = [file.read_text(encoding="utf-8") for file in shared.glob("*-*.txt")]
        assert done.returncode == 0, f"{done.stderr}\n{outputs}"
        return sorted("".join(outputs).splitlines())

    return submit_and_wait


def test_a_job_has_the_requested_threads(
    scripts: list[str], submit: Callable[[str], list[str]]
) -> None:
    assert submit(scripts[0]) == ["2"]


def test_each_task_of_an_array_has_its_number(
    scripts: list[str], submit: Callable[[str], list[str]]
) -> None:
    assert submit(scripts[1]) == sorted(f"1 {task}" for task in range(1, 17))
