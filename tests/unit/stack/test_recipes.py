"""Test the rendering of recipes, the search for providers, and rules for all recipes."""

from __future__ import annotations

import re
from pathlib import Path

import license_expression
import pytest

from builder.common import paths
from builder.common.errors import ConfigurationError
from builder.source import debian
from builder.stack import recipes, stacks
from builder.stack.recipes import Source

# Debian's snapshot archive keeps all published files, under their SHA-1.
ARCHIVE = "https://snapshot.debian.org/file/"
SHA = "0" * 64


def write(directory: Path, name: str, text: str) -> None:
    """Write a recipe into the directory of recipes."""
    (directory / name).mkdir(parents=True)
    (directory / name / "recipe.yaml").write_text("schema_version: 1\n" + text)


def format_package(name: str, host: str = "", extra: str = "") -> str:
    """Return the text of a recipe whose build string contains the BLAS.

    Args:
        host: the dependencies, separated by commas.
        extra: more entries of the recipe.
    """
    return (
        f"package: {{name: {name}, version: '1.0'}}\n"
        f"build: {{string: '0_${{{{ blas }}}}'}}\n"
        f"requirements: {{host: [{host}]}}\n{extra}"
    )


def load(stack: str = "openblas") -> dict[str, recipes.Recipe]:
    """Render all recipes for a stack."""
    return recipes.load_all(stacks.load(stack))


def test_a_recipe_reads_the_axes_of_the_stack(recipes_dir: Path) -> None:
    write(recipes_dir, "a", format_package("a"))
    assert load()["a"].outputs[0].build == "0_openblas"


def test_a_source_has_a_hash_and_optional_upstream_addresses(recipes_dir: Path) -> None:
    source = f"source:\n  - {{path: ../../build/sources/a.tar.gz, sha256: '{SHA}'}}\n"
    upstream = "extra: {upstream: {a.tar.gz: 'https://a.example/a.tar.gz'}}\n"
    write(recipes_dir, "a", format_package("a", extra=source + upstream))
    assert load()["a"].sources == (Source("a.tar.gz", SHA, ("https://a.example/a.tar.gz",)),)


def test_an_upstream_address_applies_to_files_whose_names_begin_with_its_key(
    recipes_dir: Path,
) -> None:
    files = ("a1_1.0.orig.tar.gz", "b.tar.gz")
    entries = "".join(f"  - {{path: ../../build/sources/{f}, sha256: '{SHA}'}}\n" for f in files)
    extra = f"source:\n{entries}extra: {{upstream: {{a: 'https://a.example/a.tar.gz'}}}}\n"
    write(recipes_dir, "a", format_package("a", extra=extra))
    assert [source.upstream for source in load()["a"].sources] == [
        ("https://a.example/a.tar.gz",),
        (),
    ]


def test_the_key_of_an_upstream_address_may_be_a_pattern(recipes_dir: Path) -> None:
    files = ("a1_1.0.orig.tar.gz", "a1_1.0-1.debian.tar.xz")
    entries = "".join(f"  - {{path: ../../build/sources/{f}, sha256: '{SHA}'}}\n" for f in files)
    extra = f"source:\n{entries}extra: {{upstream: {{'a*.orig': 'https://a.example/a.tar.gz'}}}}\n"
    write(recipes_dir, "a", format_package("a", extra=extra))
    assert {source.file: len(source.upstream) for source in load()["a"].sources} == {
        "a1_1.0.orig.tar.gz": 1,
        "a1_1.0-1.debian.tar.xz": 0,
    }


def test_a_recipe_for_an_axis_value_replaces_the_general_recipe(recipes_dir: Path) -> None:
    write(recipes_dir, "a-tool", format_package("a-tool"))
    write(
        recipes_dir,
        "a-tool-2.7",
        format_package("a-tool", extra="extra: {axes: {python: '2.7'}}\n"),
    )
    write(recipes_dir, "b-2.7", format_package("b", extra="extra: {axes: {python: '2.7'}}\n"))
    assert {name: recipe.path.name for name, recipe in load().items()} == {"a-tool": "a-tool"}
    for stack in stacks.load_all():
        if stack.python == "2.7":
            directories = {name: recipe.path.name for name, recipe in load(stack.name).items()}
            assert directories == {"a-tool": "a-tool-2.7", "b": "b-2.7"}


def test_the_file_fixes_lists_patches_with_their_cves(recipes_dir: Path) -> None:
    write(recipes_dir, "a", format_package("a"))
    assert load()["a"].fixes == ()
    file = recipes_dir / "a" / "fixes"
    file.write_text("# a reason\nx.patch CVE-2024-1000 CVE-2024-10000\ny.diff\n")
    assert load()["a"].fixes == (
        recipes.Fix("x.patch", ("CVE-2024-1000", "CVE-2024-10000")),
        recipes.Fix("y.diff", ()),
    )
    for invalid_text in ("x.patch CVE-2024\n", "\n", "x.patch and more\n"):
        file.write_text(invalid_text)
        with pytest.raises(ConfigurationError, match="recipes/a/fixes"):
            load()


def test_a_recipe_with_fixes_has_debians_patches_and_applies_them() -> None:
    for recipe in load().values():
        patches = [source for source in recipe.sources if source.file.endswith(".debian.tar.xz")]
        script = paths.RECIPES / "apply-fixes.sh"
        assert len(patches) == bool(recipe.fixes) == (script in recipe.project_paths), recipe.name
        build = recipe.path / "build.sh"
        applied = build.exists() and "bash apply-fixes.sh" in build.read_text("utf-8")
        assert applied == bool(recipe.fixes), recipe.name


def test_the_page_on_security_lists_every_fix() -> None:
    page = (paths.ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9]+)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    documented = {
        (name, version, cve)
        for name, version, cves in rows
        for cve in re.findall(r"CVE-[\d-]+", cves)
    }
    assert documented == {
        (recipe.name, source.file.split("_")[1].removesuffix(".debian.tar.xz"), cve)
        for recipe in load().values()
        for source in recipe.sources
        if source.file.endswith(".debian.tar.xz")
        for fix in recipe.fixes
        for cve in fix.cves
    }


def test_a_changed_version_is_enough_to_update_cpython(tmp_path: Path) -> None:
    text = (paths.RECIPES / "python" / "recipe.yaml").read_text(encoding="utf-8")
    updated_text, count = re.subn(r'version: "3\.11\.\d+"', 'version: "3.11.99"', text)
    assert count == 1
    # Remove Debian's fixes and the compiler's profile, which apply to one release only.
    updated_text, count = re.subn(
        r"(?s)  # Debian's patches for this release\..*?unpack-debs\.py\n", "", updated_text
    )
    assert count == 1
    write(tmp_path, "python", updated_text.removeprefix("schema_version: 1\n"))
    variant = recipes.make_variant(stacks.load("openblas"))
    python = recipes.render(tmp_path / "python", variant)
    [source] = python.sources
    assert python.outputs[0].version == "3.11.99"
    assert source.file == "python3.11_3.11.99.orig.tar.gz"
    [address] = source.upstream
    assert address.endswith("/3.11.99/Python-3.11.99.tgz")


@pytest.mark.parametrize("name", [stack.name for stack in stacks.load_all()])
def test_every_file_of_debian_has_an_address_in_the_snapshot_archive(name: str) -> None:
    rendered = recipes.load_all(stacks.load(name))
    for source in {source for recipe in rendered.values() for source in recipe.sources}:
        if debian.FILE.fullmatch(source.file):
            assert any(address.startswith(ARCHIVE) for address in source.upstream), source.file


def test_a_source_without_a_hash_is_refused(recipes_dir: Path) -> None:
    write(
        recipes_dir,
        "a",
        format_package("a", extra="source: {path: ../../build/sources/a.tar.gz}\n"),
    )
    with pytest.raises(ConfigurationError, match=r"recipes/a: source a\.tar\.gz has no sha256"):
        load()


def test_a_source_with_a_url_instead_of_a_path_is_refused(recipes_dir: Path) -> None:
    extra = f"source: {{url: 'https://a.example/a.tar.gz', sha256: '{SHA}'}}\n"
    write(recipes_dir, "a", format_package("a", extra=extra))
    with pytest.raises(ConfigurationError, match="neither"):
        load()


def test_an_invalid_recipe_is_named(recipes_dir: Path) -> None:
    write(recipes_dir, "a", "package: {name: a}\n")
    with pytest.raises(ConfigurationError, match=r"recipes/a/recipe\.yaml"):
        load()


def test_dependencies_come_first(recipes_dir: Path) -> None:
    write(recipes_dir, "theano-stack", format_package("theano-stack", "b"))
    write(recipes_dir, "b", format_package("b", "c"))
    write(recipes_dir, "c", format_package("c"))
    write(recipes_dir, "unneeded", format_package("unneeded"))
    order = recipes.collect_dependencies(load())
    assert list(order) == ["c", "b", "theano-stack"]
    assert order["b"] == {"c"}


def test_the_build_string_chooses_the_provider(recipes_dir: Path) -> None:
    write(recipes_dir, "theano-stack", format_package("theano-stack", "'lib * *_netlib'"))
    write(recipes_dir, "fast", format_package("lib"))
    write(recipes_dir, "slow", format_package("lib").replace("${{ blas }}", "netlib"))
    assert list(recipes.collect_dependencies(load())) == ["slow", "theano-stack"]


def test_a_version_chooses_the_provider(recipes_dir: Path) -> None:
    write(recipes_dir, "theano-stack", format_package("theano-stack"))
    write(recipes_dir, "lib", format_package("lib"))
    write(recipes_dir, "lib-0.9", format_package("lib").replace("1.0", "0.9"))
    assert list(recipes.collect_dependencies(load(), "theano-stack", "lib ==0.9")) == [
        "lib-0.9",
        "theano-stack",
    ]
    assert list(recipes.collect_dependencies(load(), "lib ==1.0")) == ["lib"]
    with pytest.raises(ConfigurationError, match=r"requires 'lib ==2\.0'"):
        recipes.collect_dependencies(load(), "lib ==2.0")


def test_an_unprovided_requirement_is_named(recipes_dir: Path) -> None:
    write(recipes_dir, "theano-stack", format_package("theano-stack", "nobody"))
    with pytest.raises(ConfigurationError, match="requires 'nobody'"):
        recipes.collect_dependencies(load())


def test_recipes_with_cyclic_dependencies_are_named(recipes_dir: Path) -> None:
    write(recipes_dir, "theano-stack", format_package("theano-stack", "b"))
    write(recipes_dir, "b", format_package("b", "theano-stack"))
    with pytest.raises(ConfigurationError, match="theano-stack -> b -> theano-stack"):
        recipes.collect_dependencies(load())


@pytest.mark.parametrize("stack", [stack.name for stack in stacks.load_all()])
def test_all_dependencies_of_every_stack_have_recipes(stack: str) -> None:
    order = recipes.collect_dependencies(load(stack))
    assert "theano" in order
    assert list(order)[-1] == recipes.METAPACKAGE


def test_recipes_that_call_a_compiler_require_its_package() -> None:
    for name, recipe in recipes.load_all(stacks.load("openblas")).items():
        script = recipe.path / "build.sh"
        text = script.read_text(encoding="utf-8") if script.exists() else ""
        build = {
            spec.split()[0]
            for output in recipe.rendered
            for spec in output.get("requirements", {}).get("build", [])
        }
        for word, package in {
            r"gcc|\./configure": "gcc_linux-64",
            "gfortran": "gfortran_linux-64",
            "make": "make",
        }.items():
            if name != "gcc" and re.search(rf"^\s*({word}) ", text, re.MULTILINE):
                assert {package, "sysroot_linux-64"} <= build, name


def test_recipes_never_name_a_stack() -> None:
    names = {stack.name for stack in stacks.load_all()} - set(_list_axis_values())
    for file in paths.RECIPES.glob("*/*"):
        if file.is_file():
            assert not [name for name in names if name.encode() in file.read_bytes()], file


def _list_axis_values() -> list[str]:
    return [value for stack in stacks.load_all() for value in stack.axes.values()]


@pytest.mark.parametrize("stack", [stack.name for stack in stacks.load_all()])
def test_every_package_has_an_spdx_licence_and_its_text(stack: str) -> None:
    licensing = license_expression.get_spdx_licensing()
    for recipe in load(stack).values():
        for rendered in recipe.rendered:
            about = rendered["about"]
            keys = licensing.license_keys(about["license"])
            unknown = {key for key in keys if not key.startswith("LicenseRef-")} - set(
                licensing.known_symbols
            )
            assert keys, recipe.name
            assert not unknown, recipe.name
            assert about["license_file"], recipe.name
            assert about["summary"], recipe.name


def test_amds_release_changes_only_amdlibm_and_the_metapackage() -> None:
    stack = stacks.load("openblas-amdlibm")
    stack_with_release = stacks.replace_amdlibm(stack, SHA)
    packages = {}
    for variant in (stack, stack_with_release):
        rendered = recipes.load_all(variant)
        recipes.collect_dependencies(rendered)
        packages[variant.name] = rendered
    amdlibm = packages[stack_with_release.name]["amdlibm"]
    assert Source(f"aocl-libm-{SHA[:16]}", SHA) in amdlibm.sources
    own_build = packages[stack.name]["amdlibm"].outputs[0].build
    assert amdlibm.outputs[0].build == f"aocl_00000000_{own_build.rpartition('_')[2]}"
    assert amdlibm.outputs[0].build != own_build
    assert "LicenseRef-AOCL-LibM" in amdlibm.rendered[0]["about"]["license"]
    assert "aocl-licence/" in amdlibm.rendered[0]["about"]["license_file"]
    differing = {
        name
        for name, recipe in packages[stack_with_release.name].items()
        if recipe.rendered != packages[stack.name][name].rendered
    }
    assert differing == {"amdlibm", recipes.METAPACKAGE}


def test_a_stack_with_amds_release_requires_the_package_of_that_release() -> None:
    stack_with_release = stacks.replace_amdlibm(stacks.load("openblas-amdlibm"), SHA)
    rendered = recipes.load_all(stack_with_release)
    rendered["amdlibm"] = load("openblas-amdlibm")["amdlibm"]
    with pytest.raises(ConfigurationError, match=r"aocl_00000000_\*"):
        recipes.collect_dependencies(rendered)
