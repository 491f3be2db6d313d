"""Open a recipe's patches as commits and save them unchanged, with real git."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import UsageError
from builder.maintenance import patches

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(tree: Path, *arguments: str) -> str:
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the recipes; return Theano's."""
    shutil.copytree(paths.RECIPES, tmp_path / "recipes")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "sources").symlink_to(paths.SOURCES)
    for name in ("runtime", "LICENSE"):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "RECIPES", tmp_path / "recipes")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tmp_path / "recipes" / "theano"


def contents(recipe: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in recipe.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", ["numpy", "scipy", "theano"])
def test_open_and_save_change_no_byte(name: str, recipe: Path) -> None:
    recipe = recipe.parent / name
    before = contents(recipe)
    tree = patches.open_tree(name)
    assert patches.save_tree(name) == []
    assert contents(recipe) == before
    # The files of src are at their paths, and git ignores them.
    own_files = [file for file in (recipe / patches.OWN_FILES).rglob("*.*") if file.is_file()]
    assert bool(own_files) == (name == "theano")
    for file in own_files:
        assert (tree / file.relative_to(recipe / patches.OWN_FILES)).resolve() == file
    assert git(tree, "status", "--porcelain") == ""


def test_the_users_git_changes_nothing(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = recipe.parents[1] / "home"
    home.mkdir()
    settings = home / ".gitconfig"
    settings.write_text(
        "[diff]\nnoprefix = true\ncontext = 9\nalgorithm = patience\nrenames = copies\n"
        "[core]\nautocrlf = true\nabbrev = 4\nquotePath = false\n[commit]\ngpgSign = true\n"
    )
    monkeypatch.setenv("THEANO_FAST_CACHE", str(paths.cache()))
    monkeypatch.setenv("HOME", str(home))
    before = contents(recipe)
    patches.open_tree("theano")
    patches.save_tree("theano")
    assert contents(recipe) == before


def test_a_change_is_saved_to_its_patch_and_order_to_the_recipe(recipe: Path) -> None:
    tree = patches.open_tree("numpy")
    numpy = recipe.parent / "numpy"
    file = tree / "numpy" / "meson.build"
    file.write_text(file.read_text() + "# one more line\n")
    with pytest.raises(UsageError, match="uncommitted"):
        patches.save_tree("numpy")
    git(tree, "commit", "--quiet", "--all", "--amend", "--no-edit")
    assert patches.save_tree("numpy") == ["lapack-by-its-name.patch"]
    assert "+# one more line" in (numpy / "patches" / "lapack-by-its-name.patch").read_text()
    file.write_text(file.read_text() + "# another\n")
    git(tree, "commit", "--quiet", "--all", "-m", "Say more\n\nFor a test.\n\nPatch: more/a.patch")
    assert patches.save_tree("numpy") == ["more/a.patch", "recipe.yaml"]
    assert (numpy / "patches" / "more" / "a.patch").read_text().startswith("Say more\n\nFor a test")
    assert patches.list_patches(numpy) == ["lapack-by-its-name.patch", "more/a.patch"]
    git(tree, "reset", "--quiet", "--hard", "HEAD^")
    assert patches.save_tree("numpy") == ["more/a.patch", "recipe.yaml"]
    assert not (numpy / "patches" / "more" / "a.patch").exists()


def test_unsaved_changes_are_not_lost(recipe: Path) -> None:
    tree = patches.open_tree("numpy")
    file = tree / "numpy" / "meson.build"
    file.write_text(file.read_text() + "# one more line\n")
    with pytest.raises(UsageError, match="unsaved changes"):
        patches.open_tree("numpy")
    git(tree, "commit", "--quiet", "--all", "--amend", "--no-edit")
    with pytest.raises(UsageError, match=r"unsaved changes:\nlapack-by-its-name\.patch"):
        patches.open_tree("numpy")
    assert "# one more line" in file.read_text()


@pytest.mark.parametrize(
    ("message", "new", "reason"),
    [
        ("Say more", "numpy/meson.build", "names no patch file"),
        ("Say more\n\nPatch: ../a.patch", "numpy/meson.build", "names no patch file"),
        ("Say more\n\nPatch: lapack-by-its-name.patch", "numpy/meson.build", "the same patch"),
        ("Say more\n\nPatch: a.patch", "numpy/new.py", "adds a file"),
    ],
)
def test_a_commit_that_is_no_patch_is_refused(
    message: str, new: str, reason: str, recipe: Path
) -> None:
    tree = patches.open_tree("numpy")
    before = contents(recipe.parent / "numpy")
    with (tree / new).open("a") as file:
        file.write("# another\n")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "-m", message)
    with pytest.raises(UsageError, match=reason):
        patches.save_tree("numpy")
    assert contents(recipe.parent / "numpy") == before


def test_without_a_work_tree_there_is_nothing_to_save(recipe: Path) -> None:
    with pytest.raises(UsageError, match="there is no work tree"):
        patches.save_tree("theano")
    with pytest.raises(UsageError, match=r"choose one of: .*numpy, .*theano"):
        patches.open_tree("six")
