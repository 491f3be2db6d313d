"""Test the definition file of a SIF file, and failed builds with Apptainer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from builder.common.errors import CommandFailed, HostToolMissing, ImageFailed
from builder.image import sif


def test_without_apptainer_the_definition_is_written_and_the_error_has_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sif.shutil, "which", lambda _: None)
    with pytest.raises(HostToolMissing, match=r"apptainer build b\.sif a\.def"):
        sif.build_sif(tmp_path / "a.tar", tmp_path / "b.sif")
    [definition] = tmp_path.iterdir()
    assert definition.read_text().startswith("Bootstrap: oci-archive\nFrom: a.tar\n")


def test_a_failed_build_leaves_no_sif(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(argv: Sequence[str | Path], **_: object) -> None:
        Path(argv[-2]).write_text("sif")
        if fails:
            raise CommandFailed("no room")

    monkeypatch.setattr(sif.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(sif, "run", build)
    fails = True
    with pytest.raises(ImageFailed, match="no room"):
        sif.build_sif(tmp_path / "a.tar", tmp_path / "a.sif")
    assert [file.name for file in tmp_path.iterdir()] == ["a.def"]
    fails = False
    sif.build_sif(tmp_path / "a.tar", tmp_path / "a.sif")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.def", "a.sif"]
