"""Compute the cache keys of recipes, and store built packages in the cache under these keys."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.common import paths
from builder.package import channel, engine
from builder.package.channel import Package
from builder.source.sources import hash_file
from builder.stack.recipes import Recipe

# Files of a recipe that its cache key omits. The key contains the rendered recipe instead of
# recipe.yaml. conformance.toml does not change the package: it lists expected failures of tests.
IGNORED_FILES = ("recipe.yaml", paths.CONFORMANCE.name)


@dataclass(frozen=True)
class Plan:
    """The recipes of a stack and their cache keys.

    Attributes:
        recipes: all recipes, dependencies first.
        needs: the names of each recipe's direct dependencies, by name of the recipe.
        keys: the cache key of each recipe, by name.
        variant: the variant configuration of the stack.
    """

    recipes: tuple[Recipe, ...]
    needs: Mapping[str, frozenset[str]]
    keys: Mapping[str, str]
    variant: Mapping[str, list[str]]

    def collect_needs(self, name: str) -> set[str]:
        """Collect the names of a recipe's direct and indirect dependencies."""
        needs = self.needs[name]
        return set(needs).union(*map(self.collect_needs, needs))


def make_plan(
    recipes: Mapping[str, Recipe],
    needs: Mapping[str, frozenset[str]],
    variant: Mapping[str, list[str]],
    engine_name: str = engine.ENGINES[0],
) -> Plan:
    """Compute the cache key of each recipe in ``needs``.

    Args:
        recipes: all rendered recipes, by name.
        needs: the direct dependencies of each recipe; dependencies come before their dependents.
        variant: the variant configuration of the stack.
        engine_name: one of ``engine.ENGINES``.

    Raises:
        CommandFailed: the engine does not print its version.
    """
    keys: dict[str, str] = {}
    builder = {
        "engine": engine.get_version(engine_name),
        "files": [hash_file(file) for file in engine.FILES],
    }
    for name, dependencies in needs.items():
        inputs = {
            "builder": builder,
            # `extra` has addresses of sources, which do not change the package.
            "recipe": [
                {key: value for key, value in output.items() if key != "extra"}
                for output in recipes[name].rendered
            ],
            "files": _hash_tree(recipes[name].path),
            "own": [_hash_tree(path) for path in recipes[name].project_paths],
            "needs": sorted(keys[dependency] for dependency in dependencies),
        }
        text = json.dumps(inputs, sort_keys=True, default=str)
        keys[name] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return Plan(tuple(recipes[name] for name in needs), needs, keys, variant)


def _hash_tree(root: Path) -> dict[str, str]:
    """Return the executable bits and the SHA-256 of each file in a tree, by relative path.

    IGNORED_FILES, hidden files and ``__pycache__`` are omitted.

    Args:
        root: a directory or a single file.
    """
    return {
        str(file.relative_to(root)): f"{file.stat().st_mode & 0o111:o} {hash_file(file)}"
        for file in sorted(root.rglob("*") if root.is_dir() else [root])
        if file.is_file()
        and file.name not in IGNORED_FILES
        and not any(part.startswith((".", "__pycache__")) for part in file.relative_to(root).parts)
    }


def find_cached(key: str, cache: Path | None = None) -> list[Package] | None:
    """Find the packages of a cache entry; return None if the cache has no entry with this key.

    Args:
        key: the cache key of a recipe.
        cache: the package cache; by default the user's.
    """
    directory = (cache or paths.get_package_cache()) / key
    try:
        rows = json.loads((directory / "packages.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return [Package(**{**row, "file": directory / row["file"]}) for row in rows]


def find_missing(plan: Plan) -> list[Recipe]:
    """Find the recipes of a plan whose packages are not in the cache."""
    return [recipe for recipe in plan.recipes if find_cached(plan.keys[recipe.name]) is None]


def store_packages(output: Path, key: str) -> list[Package]:
    """Move the packages below ``output`` into a new cache entry; return the moved packages.

    The entry appears atomically: other processes never see a part of it.

    Args:
        output: the engine's output directory.
        key: the cache key of the recipe.
    """
    cache = paths.get_package_cache()
    cache.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=cache))
    rows = []
    for subdir in channel.SUBDIRS:
        for file in sorted((output / subdir).glob("*.conda")):
            moved = file.replace(part / file.name)
            rows.append(
                {
                    "file": file.name,
                    "subdir": subdir,
                    "sha256": hash_file(moved),
                    "size": moved.stat().st_size,
                }
            )
    (part / "packages.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    part.chmod(0o755)
    part.replace(cache / key)
    packages = find_cached(key)
    assert packages is not None
    return packages
