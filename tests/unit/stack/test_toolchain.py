from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builder.common.errors import HostToolMissing
from builder.common.processes import Finished
from builder.stack import toolchain

VERSIONS = {"gcc": "12.2.0", "g++": "12.2.0", "gfortran": "12.2.0"}


def answer(versions: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: list[str]) -> Finished:
        if argv[1] == "-dumpfullversion":
            return Finished(0, versions[argv[0]] + "\n")
        return Finished(0, f"{argv[0]} (Debian) 12.2.0\nand more\n")

    monkeypatch.setattr(toolchain, "run", run)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")


def test_versions_become_variant_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(VERSIONS, monkeypatch)
    found = toolchain.probe()
    assert found.variant["gcc_version"] == "12.2.0"
    assert found.variant["c_stdlib_version"].count(".") == 1
    assert "and more" not in found.banner


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostToolMissing, match=r"gcc, g\+\+, gfortran, make, patch"):
        toolchain.probe()


def test_compilers_of_different_releases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer({**VERSIONS, "gfortran": "11.3.0"}, monkeypatch)
    with pytest.raises(HostToolMissing, match=r"gfortran 11\.3\.0"):
        toolchain.probe()


def test_compilers_that_nobody_tried_are_told_before_a_build() -> None:
    toolchain.require_known(toolchain.Toolchain("12.2.0", "2.36", ""))
    with pytest.raises(HostToolMissing, match=r"gcc 14\.2\.0: .* gcc 12\n"):
        toolchain.require_known(toolchain.Toolchain("14.2.0", "2.41", ""))
