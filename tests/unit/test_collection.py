"""Test that pytest collects every folder below tests/."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from builder.common import paths


def test_no_folder_of_tests_is_skipped(request: pytest.FixtureRequest) -> None:
    skipped_patterns = request.config.getini("norecursedirs")
    files = (paths.ROOT / "tests").rglob("test_*.py")
    folders = {part for file in files for part in file.relative_to(paths.ROOT).parts[:-1]}
    # By default, pytest skips folders with this name.
    assert "build" in folders
    assert not [
        folder for folder in folders if any(fnmatch(folder, name) for name in skipped_patterns)
    ]
