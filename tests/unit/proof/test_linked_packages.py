"""Test symlinks to the builder's packages, for an interpreter that does not have them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from builder.proof import linked_packages
from builder.source.sources import get_cached_path, hash_file
from builder.stack.recipes import Source


def test_packages_modules_and_metadata_are_symlinked(tmp_path: Path) -> None:
    linked_packages.link_packages(tmp_path, "pluggy", "py")
    assert (tmp_path / "pluggy" / "__init__.py").exists()
    assert (tmp_path / "py.py").exists()
    assert list(tmp_path.glob("pluggy-*.dist-info/METADATA"))
    assert all(entry.is_symlink() for entry in tmp_path.iterdir())


def test_nose_is_unpacked_from_its_pinned_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "nose.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nose/__init__.py", "")
    source = Source(wheel.name, hash_file(wheel))
    get_cached_path(source).parent.mkdir(parents=True)
    wheel.rename(get_cached_path(source))
    monkeypatch.setattr(linked_packages, "NOSE", (source,))
    linked_packages.unpack_nose(tmp_path)
    assert (tmp_path / "nose" / "__init__.py").exists()
