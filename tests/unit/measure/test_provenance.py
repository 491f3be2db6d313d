"""Test the provenance of a measurement: package builds, and a checkout without git."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed
from builder.measure import provenance
from builder.measure.provenance import read_commit


def test_an_environment_is_described_by_the_builds_of_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    packages = tmp_path / "openblas" / "conda-meta"
    packages.mkdir(parents=True)
    for name, version, number in (("theano", "1.0.5", 26), ("zlib", "1.3.1", 0)):
        record = {"name": name, "version": version, "build_number": number}
        (packages / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    description = provenance.describe("openblas", 3)
    assert description["packages"] == {"theano": "1.0.5 build 26"}
    assert description["runs"] == 3
    assert provenance.describe("stock")["packages"] == {}


def test_a_checkout_without_git_has_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise CommandFailed("git exited with status 128")

    monkeypatch.setattr(provenance, "run", fail)
    assert read_commit() == ""
