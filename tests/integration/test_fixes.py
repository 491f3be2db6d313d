"""Test recipes/apply-fixes.sh, which applies all patches in a recipe's list of fixes, or fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from builder.common import paths

SERIES = ("one.patch", "two.diff -p1", "other.patch")


def format_patch(before: str, after: str) -> str:
    return f"--- a/file\n+++ b/file\n@@ -1 +1 @@\n-{before}\n+{after}\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a directory with a source file and Debian's series of three patches for it."""
    patches = tmp_path / "debian" / "patches"
    patches.mkdir(parents=True)
    (patches / "series").write_text("# a comment\n" + "\n".join(SERIES) + "\n")
    (patches / "one.patch").write_text(format_patch("0", "1"))
    (patches / "two.diff").write_text(format_patch("1", "2"))
    (patches / "other.patch").write_text(format_patch("another", "line"))
    (tmp_path / "file").write_text("0\n")
    return tmp_path


def apply_fixes(work: Path, fixes: str) -> tuple[int, str]:
    """Run apply-fixes.sh with a recipe's list ``fixes``; return the exit status and the output."""
    (work / "fixes").write_text(fixes)
    done = subprocess.run(
        ["bash", paths.RECIPES / "apply-fixes.sh"],
        cwd=work,
        env={**os.environ, "RECIPE_DIR": str(work), "PREFIX": str(work / "p"), "PKG_NAME": "x"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_fixes_are_applied_and_the_list_is_packaged(work: Path) -> None:
    fixes = "# a reason\none.patch CVE-2024-1000\ntwo.diff\n"
    status, output = apply_fixes(work, fixes)
    assert status == 0, output
    assert (work / "file").read_text() == "2\n"
    assert (work / "p" / "share" / "theano-fast" / "fixes" / "x").read_text() == fixes


@pytest.mark.parametrize(
    ("fixes", "reason"),
    [
        ("one.patch\nthree.patch\n", "three.patch"),
        ("two.diff\none.patch\n", "not in its order"),
        ("two.diff\n", "FAILED"),
        ("one.patch\nother.patch\n", "FAILED"),
        ("three.patch\n", "not in Debian's series"),
    ],
    ids=["not in the series", "out of order", "on another fix", "does not fit", "alone"],
)
def test_a_fix_that_cannot_be_applied_fails_the_build(work: Path, fixes: str, reason: str) -> None:
    status, output = apply_fixes(work, fixes)
    assert status != 0
    assert reason in output
    assert not (work / "p").exists()
