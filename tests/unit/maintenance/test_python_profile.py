"""Test the recording and the file of the execution profile (PGO) of the Python interpreter."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builder.common import paths
from builder.common.errors import BuildFailed
from builder.common.processes import Finished
from builder.environment import envs
from builder.maintenance import python_profile
from builder.options import Options
from builder.pipeline import Build


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of an older profile; the environment openblas exists."""
    file = tmp_path / "profile.tar.xz"
    file.write_bytes(b"older profile")
    monkeypatch.setattr(python_profile, "PROFILE", file)
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path / "envs")
    (tmp_path / "envs" / "openblas" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    monkeypatch.setattr(envs, "require_installed", lambda _: None)
    monkeypatch.setattr(envs, "install_packages", lambda *_: None)
    return file


def write_counts(directory: Path, *objects: str) -> None:
    """Write files of execution counts (.gcda), as an instrumented program does."""
    for name in objects:
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode())


def test_programs_run_on_the_instrumented_interpreter(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs: list[str] = []

    def build(self: Build) -> tuple[list[Any], list[Any]]:
        python = next(recipe for recipe in self.plan.recipes if recipe.name == "python")
        assert python.rendered[0]["build"]["script"]["env"]["PYTHON_PROFILE"] == "record"
        assert any(source.file.startswith("libgcc-10-dev") for source in python.sources)
        return [], []

    def run(argv: list[Any], env: Mapping[str, str], cwd: Path) -> Finished:
        assert cwd != paths.ROOT
        assert str(paths.ENVIRONMENTS) in env["PYTHONPATH"]
        write_counts(
            Path(env["GCOV_PREFIX"], "dev", "null"), "Objects/dictobject.gcda", "Python/ceval.gcda"
        )
        programs.append(Path(argv[1]).name)
        return Finished(0, "")

    monkeypatch.setattr(Build, "build_recipes", build)
    monkeypatch.setattr(python_profile, "run", run)
    python_profile.record_profile("openblas", Options())
    assert "ntm.py" in programs
    with tarfile.open(profile) as tar:
        assert tar.getnames() == ["Objects/dictobject.gcda", "Python/ceval.gcda"]


def test_a_profile_depends_on_the_counts_but_not_on_their_directory(tmp_path: Path) -> None:
    contents = []
    for folder in ("first", "second/deeper"):
        write_counts(tmp_path / folder, "Python/ceval.gcda", "Objects/dictobject.gcda")
        file = tmp_path / "written.tar.xz"
        python_profile.write_profile(tmp_path / folder, file)
        contents.append(file.read_bytes())
    assert contents[0] == contents[1]


def test_without_counts_the_older_profile_is_kept(profile: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="counts"):
        python_profile.write_profile(tmp_path / "counts", profile)
    assert profile.read_bytes() == b"older profile"


def test_the_profile_has_only_counts_of_the_interpreter() -> None:
    with tarfile.open(python_profile.PROFILE) as tar:
        names = tar.getnames()
    assert "Python/ceval.gcda" in names
    assert all(name.endswith(".gcda") and not name.startswith("build") for name in names)
