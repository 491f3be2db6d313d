"""Test that a second build gets AMD's archive and writes its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder import second_build
from builder.common import paths
from builder.options import Options
from builder.package import rebuilds
from builder.package.package_cache import Plan
from builder.pipeline import Build
from builder.stack import stacks


def test_the_second_build_gets_amds_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "aocl.tar.gz"
    archive.touch()
    options = Options(amdlibm_archive=archive)
    stack = stacks.replace_amdlibm(stacks.load("openblas-amdlibm"), "ab" * 32)
    calls: list[tuple[object, ...]] = []

    def rebuild(*arguments: object) -> list[rebuilds.Comparison]:
        calls.append(arguments)
        return [rebuilds.Comparison("a", "1", "1", ())]

    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    monkeypatch.setattr(Build, "create", lambda *_: Build(stack, Plan((), {}, {}, {}), options))
    monkeypatch.setattr(Build, "build_packages", lambda _: [])
    monkeypatch.setattr(second_build, "fetch_sources", lambda *_: [])
    monkeypatch.setattr(rebuilds, "select_recipes", lambda *_: [])
    monkeypatch.setattr(rebuilds, "rebuild", rebuild)
    second_build.rebuild_packages("openblas-amdlibm", options)
    [arguments] = calls
    assert arguments[1] == "openblas-amdlibm"
    assert arguments[-1] == archive
    assert (tmp_path / "openblas-amdlibm-aocl-rebuild.json").is_file()
