"""Packages lent to an interpreter that has them not."""

from __future__ import annotations

from pathlib import Path

from builder.proof import lent_packages


def test_packages_modules_and_metadata_are_linked(tmp_path: Path) -> None:
    lent_packages.lend(tmp_path, "pluggy", "py")
    assert (tmp_path / "pluggy" / "__init__.py").exists()
    assert (tmp_path / "py.py").exists()
    assert list(tmp_path.glob("pluggy-*.dist-info/METADATA"))
    assert all(entry.is_symlink() for entry in tmp_path.iterdir())
