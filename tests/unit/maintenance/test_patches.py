"""Test the patches of recipes: their headers, and the order and size of Theano's patches."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import ConfigurationError
from builder.maintenance import patches, theano_changes

THEANO = paths.RECIPES / "theano"


def test_recipes_name_all_their_patches() -> None:
    for file in paths.RECIPES.glob("*/recipe.yaml"):
        root = file.parent / "patches"
        names = {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}
        assert sorted(names) == sorted(patches.list_patches(file.parent)), file.parent.name


def test_a_patch_has_a_header_with_its_reason() -> None:
    for file in paths.RECIPES.glob("*/recipe.yaml"):
        for name in patches.list_patches(file.parent):
            patch = patches.read_patch(file.parent, name)
            title, _, reason = patch.header.partition("\n\n")
            assert reason, name
            assert len(title) <= 90, name
            assert "\n" not in title, name
            assert not title.endswith("."), name


def test_a_file_that_is_not_a_patch_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"a\.patch"):
        patches.read_patch(tmp_path, "a.patch")
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "a.patch").write_text("A title\n\nA reason.\n")
    with pytest.raises(ConfigurationError, match=r"a\.patch is not a patch"):
        patches.read_patch(tmp_path, "a.patch")


def test_theanos_patches_are_short_and_add_no_file() -> None:
    """New code is in recipes/theano/src; a patch only ports Theano or calls this code."""
    theano_patches = [patches.read_patch(THEANO, name) for name in patches.list_patches(THEANO)]
    assert [patch.name for patch in theano_patches if patch.count_lines("+") > 100] == []
    assert [patch.name for patch in theano_patches if "\nnew file mode" in patch.diff] == []
    assert len(theano_patches) <= 60
    assert sum(patch.count_lines("+") for patch in theano_patches) <= 1858


def test_theanos_patches_are_ordered_by_theme() -> None:
    themes = [name.split("/")[0] for name in patches.list_patches(THEANO)]
    assert list(dict.fromkeys(themes)) == list(theano_changes.THEMES)
    assert themes == sorted(themes, key=list(theano_changes.THEMES).index)


def test_each_patch_of_theano_has_a_test() -> None:
    # tests/cuda tests the patches below cuda/. Theano's own tests need the patches below tests/.
    tested = [
        name for name in patches.list_patches(THEANO) if not name.startswith(("cuda/", "tests/"))
    ]
    for name in tested:
        assert list(theano_changes.find_tests(name)), name
