"""The stacks of 2017 prove themselves, and see it when they are broken."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from builder.common import paths
from builder.environment import envs
from builder.measure import seed_table
from builder.stack import stacks


@pytest.fixture(params=seed_table.old_stacks())
def stack(request: pytest.FixtureRequest) -> str:
    """Each of them that is built."""
    if envs.installed(request.param) is None:
        pytest.skip(f"not built: ./invoke build --stack={request.param}")
    return str(request.param)


def verify(stack: str, tmp_path: Path, *checks: str, flags: str = "") -> dict[str, dict[str, str]]:
    """The records of checks, by name."""
    report = tmp_path / "report.json"
    command = [paths.ENVIRONMENTS / stack / "bin" / "theano-fast", "verify", "--json", report]
    variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "THEANO_FLAGS": flags}
    done = subprocess.run([*command, "--check", *checks], env=variables, check=False)
    document = json.loads(report.read_text("utf-8"))
    assert document["verified"] == (done.returncode == 0)
    return {record["name"]: record for record in document["checks"]}


def test_products_are_the_blas_that_the_stack_names(stack: str, tmp_path: Path) -> None:
    assert verify(stack, tmp_path, "blas")["blas"]["status"] == "passed"
    library = paths.ENVIRONMENTS / stack / "lib" / "libblas.so.3"
    other = f"-L{library.parent} -l:{library.name}" if stacks.load(stack).blas == "numpy" else ""
    broken = verify(stack, tmp_path, "blas", flags=f"blas.ldflags={other}")["blas"]
    assert broken["status"] == "failed"
    assert "blas.ldflags is" in broken["message"]


def test_a_compiler_of_the_hosts_is_seen(stack: str, tmp_path: Path) -> None:
    broken = verify(stack, tmp_path, "compiler", flags="cxx=")["compiler"]
    assert broken["status"] == "failed"


def test_another_libm_is_seen(stack: str, tmp_path: Path) -> None:
    if stacks.load(stack).libm != "amdlibm":
        pytest.skip("without amdlibm there is nothing to switch off")
    broken = verify(stack, tmp_path, "libm", flags="lib.amdlibm=False")["libm"]
    assert "amdlibm is not loaded" in broken["message"]
