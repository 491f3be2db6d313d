"""Check that pytest collects every folder of tests, although it skips some names by default."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from builder.common import paths


def test_every_folder_is_collected(request: pytest.FixtureRequest) -> None:
    patterns = request.config.getini("norecursedirs")
    files = (paths.ROOT / "tests").rglob("test_*.py")
    folders = {part for file in files for part in file.relative_to(paths.ROOT).parts[:-1]}
    assert "build" in folders
    assert not [folder for folder in folders if any(fnmatch(folder, name) for name in patterns)]
