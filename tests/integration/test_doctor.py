"""What the doctor says of settings, good and bad, inside the openblas environment."""

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
def told(prefix: Path, run: Any) -> Any:
    def ask(*arguments: str, **env: str) -> tuple[int, dict[str, Any]]:
        result: Result = run(prefix / "bin" / "theano-fast", "doctor", "--json", *arguments, **env)
        return result.returncode, json.loads(result.stdout)

    return ask


def undone(known: dict[str, Any]) -> set[str]:
    return {each["setting"]["flag"] for each in known["findings"] if each["verdict"]["undoes"]}


def test_nothing_undoes_an_environment_without_settings(told: Any) -> None:
    status, known = told("--quick")
    assert status == 0
    assert known["findings"] == known["problems"] == known["says"] == []
    assert "g++" in known["compiler"]["version"]
    assert known["cache"]["writable"]
    assert [each["family"] for each in known["blas"]] == ["openblas"]


def test_an_old_theanorc_is_told_line_by_line(told: Any, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / ".theanorc"
    file.write_text(OLD_RC)
    status, known = told()
    assert status == 1
    # -lmkl_rt is taken for the environment's own BLAS, and undoes nothing then.
    assert undone(known) == {"device", "lib.cnmem"}
    found = {each["setting"]["flag"]: each for each in known["findings"]}
    assert found["device"]["setting"]["place"] == f"{file}:2"
    assert found["floatX"]["costs"]["call"] > 0


def test_a_program_without_a_compiler_costs(told: Any, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import theano\ntheano.config.cxx = ''\n")
    status, known = told(str(tmp_path / "train.py"))
    assert status == 1
    assert undone(known) == {"cxx"}
    (finding,) = known["findings"]
    # 200 times on an idle machine.
    assert finding["costs"]["call"] > 3 * known["base"]["call"]


def test_a_compilers_path_may_have_a_space(told: Any, prefix: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "a b" / "g++"
    compiler.parent.mkdir()
    own = prefix / "bin" / "x86_64-conda-linux-gnu-g++"
    compiler.write_text(f'#!/bin/sh\nexec "{own}" "$@"\n')
    compiler.chmod(0o755)
    # What is asked of it is asked at import, too, where there are flags for it.
    _, known = told("--quick", THEANO_FLAGS=f"cxx={compiler},gcc.cxxflags=-O1")
    assert known["compiler"]["version"], known["problems"]
    assert not known["compiler"]["error"]
    assert known["problems"] == known["says"] == []


def test_flags_that_lose_the_shipped_modules_are_told(told: Any) -> None:
    status, known = told("--quick", THEANO_FLAGS="openmp=True,gcc.cxxflags=-O1,typo=1")
    assert (status, undone(known)) == (1, {"openmp", "gcc.cxxflags", "typo"})


def test_a_cache_that_cannot_be_written_to_is_told(told: Any, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o555)
    status, known = told("--quick", THEANO_FLAGS=f"compiledir={folder}")
    assert status == 1
    assert "read-only" in " ".join(known["problems"])
