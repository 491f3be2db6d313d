"""Run the unchanged job scripts at the start of docs/clusters.md on the cluster."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.common import paths

Run = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = """
import os, sys
import theano
print(os.environ["OMP_NUM_THREADS"], *sys.argv[1:])
"""


@pytest.fixture
def scripts() -> list[str]:
    page = (paths.ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(#!/bin/bash\n.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def submit(run: Run, shared: Path, prefix: Path) -> Callable[[str], list[str]]:
    """Submit a script next to the unpacked environment; return its sorted output lines."""
    (shared / "theano-fast-openblas").symlink_to(prefix)
    (shared / "train.py").write_text(PROGRAM, encoding="utf-8")

    def wait_for(script: str) -> list[str]:
        (shared / "job.sh").write_text(script, encoding="utf-8")
        done = run("sbatch", "--wait", f"--chdir={shared}", shared / "job.sh")
        outputs = [file.read_text(encoding="utf-8") for file in shared.glob("*-*.txt")]
        assert done.returncode == 0, f"{done.stderr}\n{outputs}"
        return sorted("".join(outputs).splitlines())

    return wait_for


def test_a_job_has_the_requested_threads(
    scripts: list[str], submit: Callable[[str], list[str]]
) -> None:
    assert submit(scripts[0]) == ["2"]


def test_each_task_of_an_array_has_its_number(
    scripts: list[str], submit: Callable[[str], list[str]]
) -> None:
    assert submit(scripts[1]) == sorted(f"1 {task}" for task in range(1, 17))
