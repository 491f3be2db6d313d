"""Open a recipe's patches as git commits, edit the commits, and save them as patches."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed, UsageError
from builder.maintenance import patch_states, patches

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def run_git(tree: Path, *arguments: str) -> str:
    """Run git in a work tree as a fictitious author; return its output."""
    author = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    command = ["git", *author, *arguments]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy all recipes, make the builder use the copies, and return the copy of Theano's recipe."""
    shutil.copytree(paths.RECIPES, tmp_path / "recipes")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "sources").symlink_to(paths.SOURCES)
    for name in ("runtime", "LICENSE"):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "RECIPES", tmp_path / "recipes")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tmp_path / "recipes" / "theano"


def read_contents(recipe: Path) -> dict[str, bytes]:
    """Map the path of each file of a recipe to its bytes."""
    return {str(file): file.read_bytes() for file in recipe.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", ["numpy", "scipy", "theano"])
def test_open_and_save_change_no_byte(name: str, recipe: Path) -> None:
    recipe = recipe.parent / name
    before = read_contents(recipe)
    tree = patches.open_tree(name)
    assert patches.save_tree(name) == []
    assert read_contents(recipe) == before
    # The files of the recipe's src are in the work tree at their installed paths; git ignores them.
    own_files = [file for file in (recipe / patches.OWN_FILES).rglob("*.*") if file.is_file()]
    assert bool(own_files) == (name == "theano")
    for file in own_files:
        assert (tree / file.relative_to(recipe / patches.OWN_FILES)).resolve() == file
    assert run_git(tree, "status", "--porcelain") == ""


def test_the_users_git_configuration_has_no_effect(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that change diffs and commits do not change the saved patches."""
    home = recipe.parents[1] / "home"
    home.mkdir()
    settings = home / ".gitconfig"
    settings.write_text(
        "[diff]\nnoprefix = true\ncontext = 9\nalgorithm = patience\nrenames = copies\n"
        "[core]\nautocrlf = true\nabbrev = 4\nquotePath = false\n[commit]\ngpgSign = true\n"
    )
    monkeypatch.setenv("THEANO_FAST_CACHE", str(paths.get_cache()))
    monkeypatch.setenv("HOME", str(home))
    before = read_contents(recipe)
    patches.open_tree("theano")
    patches.save_tree("theano")
    assert read_contents(recipe) == before


def test_commits_are_saved_to_patches_and_their_order_to_the_recipe(recipe: Path) -> None:
    """A changed commit changes its patch; added and removed commits also change recipe.yaml."""
    tree = patches.open_tree("numpy")
    numpy = recipe.parent / "numpy"
    file = tree / "numpy" / "meson.build"
    file.write_text(file.read_text() + "# one more line\n")
    with pytest.raises(UsageError, match="uncommitted"):
        patches.save_tree("numpy")
    run_git(tree, "commit", "--quiet", "--all", "--amend", "--no-edit")
    assert patches.save_tree("numpy") == ["lapack-by-its-name.patch"]
    assert "+# one more line" in (numpy / "patches" / "lapack-by-its-name.patch").read_text()
    file.write_text(file.read_text() + "# another\n")
    run_git(
        tree, "commit", "--quiet", "--all", "-m", "Say more\n\nFor a test.\n\nPatch: more/a.patch"
    )
    assert patches.save_tree("numpy") == ["more/a.patch", "recipe.yaml"]
    assert (numpy / "patches" / "more" / "a.patch").read_text().startswith("Say more\n\nFor a test")
    assert patches.list_patches(numpy)[-2:] == ["lapack-by-its-name.patch", "more/a.patch"]
    run_git(tree, "reset", "--quiet", "--hard", "HEAD^")
    assert patches.save_tree("numpy") == ["more/a.patch", "recipe.yaml"]
    assert not (numpy / "patches" / "more" / "a.patch").exists()


def test_unsaved_changes_are_not_overwritten(recipe: Path) -> None:
    """``open_tree`` refuses to replace a work tree with uncommitted or unsaved changes."""
    tree = patches.open_tree("numpy")
    file = tree / "numpy" / "meson.build"
    file.write_text(file.read_text() + "# one more line\n")
    with pytest.raises(UsageError, match="unsaved changes"):
        patches.open_tree("numpy")
    run_git(tree, "commit", "--quiet", "--all", "--amend", "--no-edit")
    with pytest.raises(UsageError, match=r"unsaved changes:\nlapack-by-its-name\.patch"):
        patches.open_tree("numpy")
    assert "# one more line" in file.read_text()


@pytest.mark.parametrize(
    ("message", "changed_file", "reason"),
    [
        ("Say more", "numpy/meson.build", "names no patch file"),
        ("Say more\n\nPatch: ../a.patch", "numpy/meson.build", "names no patch file"),
        ("Say more\n\nPatch: lapack-by-its-name.patch", "numpy/meson.build", "the same patch"),
        ("Say more\n\nPatch: a.patch", "numpy/new.py", "adds a file"),
    ],
)
def test_a_commit_that_is_not_a_patch_is_refused(
    message: str, changed_file: str, reason: str, recipe: Path
) -> None:
    tree = patches.open_tree("numpy")
    before = read_contents(recipe.parent / "numpy")
    with (tree / changed_file).open("a") as file:
        file.write("# another\n")
    run_git(tree, "add", "--all")
    run_git(tree, "commit", "--quiet", "-m", message)
    with pytest.raises(UsageError, match=reason):
        patches.save_tree("numpy")
    assert read_contents(recipe.parent / "numpy") == before


def test_saving_requires_a_work_tree(recipe: Path) -> None:
    """Opening requires a recipe that has patches."""
    with pytest.raises(UsageError, match="does not exist"):
        patches.save_tree("theano")
    with pytest.raises(UsageError, match=r"choose one of: .*numpy, .*theano"):
        patches.open_tree("six")


def test_static_errors_are_found_by_file_and_message(tmp_path: Path) -> None:
    """The result maps the file and the message of each error to its line."""
    (tmp_path / "a.py").write_text("def f():\n    return missing\n")
    (tmp_path / "b.py").write_text("x = (\n")
    errors = patch_states.find_static_errors(tmp_path)
    assert errors["a.py", "F821 Undefined name `missing`"] == 2
    assert any(path == "b.py" for path, _ in errors)


def test_broken_and_missing_patches_are_named(recipe: Path) -> None:
    """The errors name the patch whose function returns nothing, and the omitted patch."""
    patch = recipe / "patches" / "results" / "repeated-indices.patch"
    patch.write_text(
        patch.read_text().replace("+    return (isinstance", "+    unused = (isinstance")
    )
    with pytest.raises(
        CommandFailed, match=r"repeated-indices.*opt\.py:\d+: _are_unique returns nothing"
    ):
        patch_states.check_statically()
    name = "build/damaged-modules.patch"
    with pytest.raises(CommandFailed, match=rf"does not apply without {re.escape(name)}"):
        list(patch_states.apply_patches(recipe / "tree", offline=True, without=name))
