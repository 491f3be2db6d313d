"""Run the doctor inside the openblas environment with valid and invalid settings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support import Result

OLD_RC = """[global]
device = gpu0
floatX = float32
[blas]
ldflags = -lmkl_rt
[lib]
cnmem = 0.8
"""


@pytest.fixture
def doctor(prefix: Path, run: Any) -> Any:
    """Return a function that runs ``theano-fast doctor`` and returns its exit status and report."""

    def run_doctor(*arguments: str, **env: str) -> tuple[int, dict[str, Any]]:
        result: Result = run(prefix / "bin" / "theano-fast", "doctor", "--json", *arguments, **env)
        return result.returncode, json.loads(result.stdout)

    return run_doctor


def find_disabling_flags(report: dict[str, Any]) -> set[str]:
    """Return the Theano flags that disable a part of the stack, according to the report."""
    return {
        finding["setting"]["flag"]
        for finding in report["findings"]
        if finding["verdict"]["disables_part"]
    }


def test_an_environment_without_settings_has_no_findings(doctor: Any) -> None:
    status, report = doctor("--quick")
    assert status == 0
    assert report["findings"] == report["problems"] == report["says"] == []
    assert "g++" in report["compiler"]["version"]
    assert report["cache"]["writable"]
    assert [library["family"] for library in report["blas"]] == ["openblas"]


def test_an_old_theanorc_is_reported_line_by_line(doctor: Any, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / ".theanorc"
    file.write_text(OLD_RC)
    status, report = doctor()
    assert status == 1
    # The flag blas.ldflags disables nothing: Theano replaces -lmkl_rt by the environment's BLAS.
    assert find_disabling_flags(report) == {"device", "lib.cnmem"}
    findings = {finding["setting"]["flag"]: finding for finding in report["findings"]}
    assert findings["device"]["setting"]["origin"] == f"{file}:2"
    assert findings["floatX"]["costs"]["call"] > 0


def test_the_cost_of_a_missing_compiler_is_measured(doctor: Any, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import theano\ntheano.config.cxx = ''\n")
    status, report = doctor(str(tmp_path / "train.py"))
    assert status == 1
    assert find_disabling_flags(report) == {"cxx"}
    (finding,) = report["findings"]
    # On an idle machine, the factor is 200. Require only 3, because the machine may be busy.
    assert finding["costs"]["call"] > 3 * report["base"]["call"]


def test_a_compilers_path_may_have_a_space(doctor: Any, prefix: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "a b" / "g++"
    compiler.parent.mkdir()
    real_compiler = prefix / "bin" / "x86_64-conda-linux-gnu-g++"
    compiler.write_text(f'#!/bin/sh\nexec "{real_compiler}" "$@"\n')
    compiler.chmod(0o755)
    # If gcc.cxxflags is set, `import theano` already calls the compiler.
    _, report = doctor("--quick", THEANO_FLAGS=f"cxx={compiler},gcc.cxxflags=-O1")
    assert report["compiler"]["version"], report["problems"]
    assert not report["compiler"]["error"]
    assert report["problems"] == report["says"] == []


def test_flags_that_disable_shipped_modules_are_reported(doctor: Any) -> None:
    status, report = doctor("--quick", THEANO_FLAGS="openmp=True,gcc.cxxflags=-O1,typo=1")
    assert (status, find_disabling_flags(report)) == (1, {"openmp", "gcc.cxxflags", "typo"})


def test_a_cache_that_cannot_be_written_to_is_reported(doctor: Any, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o555)
    status, report = doctor("--quick", THEANO_FLAGS=f"compiledir={folder}")
    assert status == 1
    assert "read-only" in " ".join(report["problems"])
