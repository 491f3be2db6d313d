"""Test the cache keys of recipes, and the search for cache entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builder.package import package_cache
from builder.stack import recipes, stacks

RECIPE = """schema_version: 1
package: {{name: {name}, version: '1.0'}}
build: {{script: build.sh}}
requirements: {{host: [{host}]}}
"""


@pytest.fixture
def project(recipes_dir: Path) -> Path:
    """Write four recipes: theano-stack requires b, and b requires c; d is alone."""
    for name, host in (("theano-stack", "b"), ("b", "c"), ("c", ""), ("d", "")):
        (recipes_dir / name).mkdir(parents=True)
        (recipes_dir / name / "recipe.yaml").write_text(RECIPE.format(name=name, host=host))
        (recipes_dir / name / "build.sh").write_text("true\n")
    return recipes_dir


def compute_keys() -> dict[str, str]:
    """Return the cache key of each recipe."""
    stack = stacks.load("openblas")
    rendered = recipes.load_all(stack)
    needs = {**recipes.collect_dependencies(rendered), "d": frozenset[str]()}
    return dict(package_cache.make_plan(rendered, needs, recipes.make_variant(stack)).keys)


def find_changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Return the recipes whose cache keys differ."""
    return {name for name in before if before[name] != after[name]}


def test_a_changed_script_changes_the_cache_keys_of_its_recipe_and_dependents(
    project: Path,
) -> None:
    before = compute_keys()
    (project / "b" / "build.sh").write_text("false\n")
    assert find_changed(before, compute_keys()) == {"b", "theano-stack"}


def test_a_comment_in_a_recipe_changes_no_cache_key(project: Path) -> None:
    before = compute_keys()
    file = project / "c" / "recipe.yaml"
    file.write_text(file.read_text() + "# a reason\n")
    assert find_changed(before, compute_keys()) == set()


def test_a_new_patch_changes_the_cache_key(project: Path) -> None:
    before = compute_keys()
    (project / "d" / "patches").mkdir()
    (project / "d" / "patches" / "0001-x.patch").write_text("x")
    assert find_changed(before, compute_keys()) == {"d"}


def test_indirect_dependencies_are_collected(project: Path) -> None:
    stack = stacks.load("openblas")
    rendered = recipes.load_all(stack)
    plan = package_cache.make_plan(rendered, recipes.collect_dependencies(rendered), {})
    assert plan.collect_needs("theano-stack") == {"b", "c"}


def write_engine_output(directory: Path) -> Path:
    """Write two packages as the engine does; return their directory."""
    for subdir, name in (("linux-64", "a-1.0-h0_0.conda"), ("noarch", "b-1.0-py_0.conda")):
        (directory / subdir).mkdir(parents=True)
        (directory / subdir / name).write_bytes(name.encode())
        (directory / subdir / "repodata.json").write_text("{}")
    return directory


def test_stored_packages_are_found_by_their_cache_key(tmp_path: Path) -> None:
    stored = package_cache.store_packages(write_engine_output(tmp_path / "out"), "k" * 32)
    assert package_cache.find_cached("k" * 32) == stored
    assert [package.path for package in stored] == [
        "linux-64/a-1.0-h0_0.conda",
        "noarch/b-1.0-py_0.conda",
    ]
    assert stored[0].name == "a"
    assert stored[0].size == len("a-1.0-h0_0.conda")


def test_an_incomplete_cache_entry_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "dumps", interrupt)
    with pytest.raises(KeyboardInterrupt):
        package_cache.store_packages(write_engine_output(tmp_path / "out"), "k" * 32)
    assert package_cache.find_cached("k" * 32) is None
