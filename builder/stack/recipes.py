"""What recipes say for a stack: outputs, sources, and which recipe needs which."""

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
    """A file a recipe is built from; ``upstream`` are addresses of its own."""

    file: str
    sha256: str
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fix:
    """A patch of Debian's that a recipe applies, and the CVEs that it mends."""

    patch: str
    cves: tuple[str, ...]


@dataclass(frozen=True)
class Output:
    """One package of a recipe, as it will be called, and the match specs it needs."""

    name: str
    version: str
    build: str
    requires: tuple[str, ...]

    @property
    def record(self) -> PackageRecord:
        """The output as a solver sees it."""
        build = BuildString(self.build)
        return PackageRecord(self.name, self.version, build, 0, "linux-64", None, None)


@dataclass(frozen=True)
class Recipe:
    """A recipe rendered for one stack.

    Attributes:
        own: the parts of this project that it packages or is built by.
        fixes: what ``recipes/apply-fixes.sh`` applies.
        axes: the values on axes that it is for, if it is not for all.
    """

    name: str
    path: Path
    outputs: tuple[Output, ...]
    sources: tuple[Source, ...]
    own: tuple[Path, ...]
    rendered: tuple[Mapping[str, Any], ...]
    fixes: tuple[Fix, ...] = ()
    axes: Mapping[str, str] = field(default_factory=dict)


def variant(stack: Stack) -> dict[str, list[str]]:
    """The variant configuration a stack's recipes are rendered with."""
    # The metapackage's build string holds the stack's name; a `-` would end the version there.
    keys = {**stack.axes, **toolchain.variant(), "stack": stack.base.replace("-", "_")}
    if stack.amdlibm_archive:
        keys["amdlibm_archive"] = stack.amdlibm_archive
    return {key: [value] for key, value in keys.items()}


def render(path: Path, configuration: Mapping[str, list[str]]) -> Recipe:
    """Render ``path/recipe.yaml``.

    Raises:
        ConfigurationError: it is not a valid recipe, or a source has no sha256.
    """
    try:
        stage0 = rattler_build.Stage0Recipe.from_file(path / "recipe.yaml")
        variants = stage0.render(
            rattler_build.VariantConfig(dict(configuration)), rattler_build.RenderConfig()
        )
    except rattler_build.RattlerBuildError as error:
        raise ConfigurationError(f"recipes/{path.name}/recipe.yaml: {error}") from error
    rendered = tuple(item.recipe.to_dict() for item in variants)
    names = {item["package"]["name"] for item in rendered}
    axes = rendered[0].get("extra", {}).get("axes", {})
    sources: dict[str, Source] = {}
    parts: set[Path] = set()
    for item in rendered:
        upstream = item.get("extra", {}).get("upstream", {})
        for entry in item.get("source", []):
            source = _source(path, entry, upstream)
            if isinstance(source, Path):
                parts.add(source)
            else:
                sources[source.file] = source
    return Recipe(
        # Without what it has after the name of the one that it is in place of.
        name=path.name.rpartition("-")[0] if axes else path.name,
        path=path,
        outputs=tuple(_output(item, names) for item in rendered),
        sources=tuple(sorted(sources.values(), key=lambda source: source.file)),
        own=tuple(sorted(parts)),
        rendered=rendered,
        fixes=fixes(path),
        axes=axes,
    )


def fixes(path: Path) -> tuple[Fix, ...]:
    """What the list ``path/fixes`` names, if there is one.

    Raises:
        ConfigurationError: a line is not a patch and CVEs.
    """
    file = path / "fixes"
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("#"):
            continue
        patch, *cves = line.split() or [""]
        if not patch or not all(re.fullmatch(r"CVE-\d{4}-\d{4,}", cve) for cve in cves):
            raise ConfigurationError(f"recipes/{path.name}/fixes: {line!r} is not PATCH CVE...")
        found.append(Fix(patch, tuple(cves)))
    return tuple(found)


def _source(path: Path, entry: Mapping[str, Any], upstream: Mapping[str, str]) -> Source | Path:
    where = Path(str(entry.get("path", "")))
    if where.parent != Path("../../build/sources"):
        own = (path / where).resolve()
        if entry.get("path") and own.exists() and own.is_relative_to(paths.ROOT):
            return own
        raise ConfigurationError(
            f"recipes/{path.name}: source {dict(entry)} is neither ../../build/sources/<file> "
            "nor a part of this project"
        )
    if not entry.get("sha256"):
        raise ConfigurationError(f"recipes/{path.name}: source {where.name} has no sha256")
    addresses = (url for name, url in upstream.items() if fnmatchcase(where.name, f"{name}*"))
    return Source(where.name, entry["sha256"], tuple(addresses))


def _output(rendered: Mapping[str, Any], names: set[str]) -> Output:
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


def load_all(stack: Stack) -> dict[str, Recipe]:
    """Every recipe of the project rendered for a stack, by name.

    One for values on axes (``extra: axes:``), as python-2.7, is in place of python.
    """
    configuration = variant(stack)
    files = sorted(paths.RECIPES.glob("*/recipe.yaml"))
    found = [render(file.parent, configuration) for file in files]
    fitting = [recipe for recipe in found if recipe.axes.items() <= stack.axes.items()]
    return {recipe.name: recipe for recipe in sorted(fitting, key=lambda recipe: len(recipe.axes))}


def needs(recipe: Recipe, recipes: Iterable[Recipe]) -> set[str]:
    """Names of the recipes that provide what ``recipe`` requires.

    Raises:
        ConfigurationError: a requirement that no recipe provides.
    """
    others = [other for other in recipes if other.name != recipe.name]
    specs = {spec for output in recipe.outputs for spec in output.requires}
    return _providers(specs, others, f"recipes/{recipe.name}")


def _providers(specs: Iterable[str], recipes: Collection[Recipe], asks: str) -> set[str]:
    found = set()
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
                f"{asks} requires {spec!r}, which no recipe of this stack provides",
                "add a recipe, or correct the requirement",
            )
        found |= providers
    return found


def closure(recipes: Mapping[str, Recipe], *specs: str) -> dict[str, frozenset[str]]:
    """What match specs ask for, or else the metapackage: recipes with those that they need.

    Dependencies are first.

    Raises:
        ConfigurationError: a requirement nobody provides, or recipes that need each other.
    """
    order: dict[str, frozenset[str]] = {}

    def visit(current: str, trail: tuple[str, ...]) -> None:
        if current in trail:
            raise ConfigurationError(f"recipes need each other: {' -> '.join((*trail, current))}")
        if current in order:
            return
        needed = needs(recipes[current], recipes.values())
        for other in sorted(needed):
            visit(other, (*trail, current))
        order[current] = frozenset(needed)

    for name in sorted(_providers(specs or (METAPACKAGE,), recipes.values(), "the stack")):
        visit(name, ())
    return order
