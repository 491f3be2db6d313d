"""Render recipes for a stack, and find the recipes that provide a recipe's requirements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import rattler_build
from rattler import MatchSpec, PackageRecord
from rattler.package import BuildString

from builder.common import paths
from builder.common.errors import ConfigurationError
from builder.stack import toolchain
from builder.stack.stacks import Stack

METAPACKAGE = "theano-stack"


@dataclass(frozen=True)
class Source:
    """A source: its file name, its pinned SHA-256, and its addresses in ``extra: upstream:``."""

    file: str
    sha256: str
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fix:
    """A Debian patch that a recipe applies, and the CVEs that it fixes."""

    patch: str
    cves: tuple[str, ...]


@dataclass(frozen=True)
class Output:
    """A package that a recipe makes, and the match specs of its requirements.

    ``requires`` has the requirements of its build, of its tests, and at run time.
    """

    name: str
    version: str
    build: str
    requires: tuple[str, ...]

    @property
    def record(self) -> PackageRecord:
        """The package's record, for comparisons with match specs."""
        build = BuildString(self.build)
        return PackageRecord(self.name, self.version, build, 0, "linux-64", None, None)


@dataclass(frozen=True)
class Recipe:
    """A recipe rendered for one stack.

    Attributes:
        name: the name of the recipe. Recipes for different axis values share a name, such as
            ``python``.
        path: the recipe's directory.
        outputs: the packages that the recipe makes.
        sources: the sources to fetch.
        project_paths: the files and directories of this project among the recipe's sources.
        rendered: the rendered recipe of each output.
        fixes: the patches that ``recipes/apply-fixes.sh`` applies.
        axes: the axis values to which the recipe is restricted.
    """

    name: str
    path: Path
    outputs: tuple[Output, ...]
    sources: tuple[Source, ...]
    project_paths: tuple[Path, ...]
    rendered: tuple[Mapping[str, Any], ...]
    fixes: tuple[Fix, ...] = ()
    axes: Mapping[str, str] = field(default_factory=dict)


def make_variant(stack: Stack) -> dict[str, list[str]]:
    """Make the variant configuration with which a stack's recipes are rendered."""
    # The metapackage's build string contains the stack's name. A build string must not contain `-`,
    # which separates the parts of a package's file name.
    keys = {**stack.axes, **toolchain.read_variant(), "stack": stack.base.replace("-", "_")}
    if stack.amdlibm_archive:
        keys["amdlibm_archive"] = stack.amdlibm_archive
    return {key: [value] for key, value in keys.items()}


def load_all(stack: Stack) -> dict[str, Recipe]:
    """Render all recipes of the project for a stack; return them by name.

    A recipe for certain axis values (``extra: axes:``), such as ``python-2.7``, replaces the
    general recipe, such as ``python``. A recipe for axis values of other stacks is omitted.
    """
    variant = make_variant(stack)
    files = sorted(paths.RECIPES.glob("*/recipe.yaml"))
    recipes = [render(file.parent, variant) for file in files]
    suitable = [recipe for recipe in recipes if recipe.axes.items() <= stack.axes.items()]
    # In a dictionary, the last recipe of a name remains. Sort the most specific recipe last.
    return {recipe.name: recipe for recipe in sorted(suitable, key=lambda recipe: len(recipe.axes))}


def render(path: Path, variant: Mapping[str, list[str]]) -> Recipe:
    """Render ``path/recipe.yaml`` with a variant configuration.

    Raises:
        ConfigurationError: the recipe is invalid, or a source has no SHA-256.
    """
    try:
        stage0 = rattler_build.Stage0Recipe.from_file(path / "recipe.yaml")
        variants = stage0.render(
            rattler_build.VariantConfig(dict(variant)), rattler_build.RenderConfig()
        )
    except rattler_build.RattlerBuildError as error:
        raise ConfigurationError(f"recipes/{path.name}/recipe.yaml: {error}") from error
    rendered = tuple(item.recipe.to_dict() for item in variants)
    names = {item["package"]["name"] for item in rendered}
    axes = rendered[0].get("extra", {}).get("axes", {})
    sources: dict[str, Source] = {}
    project_paths: set[Path] = set()
    for item in rendered:
        upstream = item.get("extra", {}).get("upstream", {})
        for entry in item.get("source", []):
            source = _parse_source(path, entry, upstream)
            if isinstance(source, Path):
                project_paths.add(source)
            else:
                sources[source.file] = source
    return Recipe(
        # The directory of a recipe for certain axis values has a suffix: python-2.7.
        name=path.name.rpartition("-")[0] if axes else path.name,
        path=path,
        outputs=tuple(_parse_output(item, names) for item in rendered),
        sources=tuple(sorted(sources.values(), key=lambda source: source.file)),
        project_paths=tuple(sorted(project_paths)),
        rendered=rendered,
        fixes=read_fixes(path),
        axes=axes,
    )


def read_fixes(path: Path) -> tuple[Fix, ...]:
    """Read the file ``path/fixes``, if it exists. Each line has the name of a patch and its CVEs.

    Raises:
        ConfigurationError: a line is not PATCH CVE...
    """
    file = path / "fixes"
    fixes = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("#"):
            continue
        patch, *cves = line.split() or [""]
        if not patch or not all(re.fullmatch(r"CVE-\d{4}-\d{4,}", cve) for cve in cves):
            raise ConfigurationError(f"recipes/{path.name}/fixes: {line!r} is not PATCH CVE...")
        fixes.append(Fix(patch, tuple(cves)))
    return tuple(fixes)


def find_dependencies(recipe: Recipe, recipes: Iterable[Recipe]) -> set[str]:
    """Find the names of the recipes that provide the requirements of ``recipe``.

    Args:
        recipes: all recipes of the stack.

    Raises:
        ConfigurationError: no recipe provides a requirement.
    """
    others = [other for other in recipes if other.name != recipe.name]
    specs = {spec for output in recipe.outputs for spec in output.requires}
    return _find_providers(specs, others, f"recipes/{recipe.name}")


def collect_dependencies(recipes: Mapping[str, Recipe], *specs: str) -> dict[str, frozenset[str]]:
    """Collect the recipes that provide match specs, with their direct and indirect dependencies.

    Args:
        recipes: all recipes of the stack, by name.
        specs: the match specs; by default the metapackage.

    Returns:
        The names of each recipe's direct dependencies, by name of the recipe. A recipe comes after
        its dependencies.

    Raises:
        ConfigurationError: no recipe provides a requirement, or dependencies are cyclic.
    """
    dependencies: dict[str, frozenset[str]] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            raise ConfigurationError(f"cyclic dependency: recipes {' -> '.join((*trail, name))}")
        if name in dependencies:
            return
        direct = find_dependencies(recipes[name], recipes.values())
        for other in sorted(direct):
            visit(other, (*trail, name))
        dependencies[name] = frozenset(direct)

    for name in sorted(_find_providers(specs or (METAPACKAGE,), recipes.values(), "the stack")):
        visit(name, ())
    return dependencies


def _parse_source(
    path: Path, entry: Mapping[str, Any], upstream: Mapping[str, str]
) -> Source | Path:
    """Parse an entry of a recipe's ``source:``.

    Args:
        path: the recipe's directory.
        entry: the entry.
        upstream: the recipe's ``extra: upstream:``, addresses by the first part of a file name.

    Returns:
        A source to fetch, or the path of a file or directory of this project.
    """
    file = Path(str(entry.get("path", "")))
    if file.parent != Path("../../build/sources"):
        project_path = (path / file).resolve()
        if entry.get("path") and project_path.exists() and project_path.is_relative_to(paths.ROOT):
            return project_path
        raise ConfigurationError(
            f"recipes/{path.name}: source {dict(entry)} is neither ../../build/sources/<file> "
            "nor a file or directory of this project"
        )
    if not entry.get("sha256"):
        raise ConfigurationError(f"recipes/{path.name}: source {file.name} has no sha256")
    addresses = (url for name, url in upstream.items() if fnmatchcase(file.name, f"{name}*"))
    return Source(file.name, entry["sha256"], tuple(addresses))


def _parse_output(rendered: Mapping[str, Any], names: set[str]) -> Output:
    """Parse a rendered output.

    Args:
        names: the names of all outputs of the recipe. They are removed from the requirements.
    """
    requirements = rendered.get("requirements", {})
    specs = [spec for key in ("build", "host", "run") for spec in requirements.get(key, [])]
    for test in rendered.get("tests", []):
        for group in test.get("requirements", {}).values():
            specs += group
    package = rendered["package"]
    return Output(
        name=package["name"],
        version=package["version"],
        build=rendered["build"]["string"],
        requires=tuple(
            spec
            for spec in specs
            if isinstance(spec, str) and not spec.startswith("__") and spec.split()[0] not in names
        ),
    )


def _find_providers(specs: Iterable[str], recipes: Collection[Recipe], client: str) -> set[str]:
    """Find the names of the recipes that provide packages for match specs.

    Args:
        client: the subject of the error message, such as ``recipes/numpy``.

    Raises:
        ConfigurationError: no recipe provides a package for a match spec.
    """
    names = set()
    for spec in specs:
        match = MatchSpec(spec)
        providers = {
            recipe.name
            for recipe in recipes
            for output in recipe.outputs
            if match.matches(output.record)
        }
        if not providers:
            raise ConfigurationError(
                f"{client} requires {spec!r}, which no recipe of this stack provides",
                "add a recipe, or correct the requirement",
            )
        names |= providers
    return names
