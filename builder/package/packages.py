"""What a stack is built from, and the cache of what was built: one entry for each set of inputs."""

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
from builder.source.sources import sha256
from builder.stack.recipes import Recipe


@dataclass(frozen=True)
class Plan:
    """What a stack is built from: recipes dependencies first, and the key of each one's inputs."""

    recipes: tuple[Recipe, ...]
    needs: Mapping[str, frozenset[str]]
    keys: Mapping[str, str]
    variant: Mapping[str, list[str]]

    def closure(self, name: str) -> set[str]:
        """The recipes that a recipe needs, directly or not."""
        direct = self.needs[name]
        return set(direct).union(*(self.closure(other) for other in direct))


def plan(
    recipes: Mapping[str, Recipe],
    needs: Mapping[str, frozenset[str]],
    variant: Mapping[str, list[str]],
    engine_name: str = engine.ENGINES[0],
) -> Plan:
    """Compute the input key of each recipe in ``needs``, which lists dependencies first.

    Raises:
        CommandFailed: the engine does not tell its version.
    """
    keys: dict[str, str] = {}
    builder = {
        "engine": engine.version(engine_name),
        "files": [sha256(file) for file in engine.FILES],
    }
    for name, needed in needs.items():
        inputs = {
            "builder": builder,
            # `extra` says where sources may be had, which changes nothing in what is built.
            "recipe": [
                {key: value for key, value in output.items() if key != "extra"}
                for output in recipes[name].rendered
            ],
            "files": _tree(recipes[name].path),
            "own": [_tree(part) for part in recipes[name].own],
            "needs": sorted(keys[other] for other in needed),
        }
        text = json.dumps(inputs, sort_keys=True, default=str)
        keys[name] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return Plan(tuple(recipes[name] for name in needs), needs, keys, variant)


# A recipe.yaml counts as rendered, not as text; the other says how a package is judged.
NOT_INPUTS = ("recipe.yaml", paths.CONFORMANCE.name)


def _tree(root: Path) -> dict[str, str]:
    """Mode and hash of each file that is an input of the package; caches are none."""
    return {
        str(file.relative_to(root)): f"{file.stat().st_mode & 0o111:o} {sha256(file)}"
        for file in sorted(root.rglob("*") if root.is_dir() else [root])
        if file.is_file()
        and file.name not in NOT_INPUTS
        and not any(part.startswith((".", "__pycache__")) for part in file.relative_to(root).parts)
    }


def cached(key: str, cache: Path | None = None) -> list[Package] | None:
    """The packages built from the inputs that ``key`` stands for, if they were.

    Args:
        cache: the package cache to look into, if not the user's.
    """
    directory = (cache or paths.package_cache()) / key
    try:
        rows = json.loads((directory / "packages.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return [Package(**{**row, "file": directory / row["file"]}) for row in rows]


def missing(plan: Plan) -> list[Recipe]:
    """The recipes of a plan whose packages are not in the cache."""
    return [recipe for recipe in plan.recipes if cached(plan.keys[recipe.name]) is None]


def store(output: Path, key: str) -> list[Package]:
    """Move what the engine wrote into the package cache, all of it or nothing."""
    cache = paths.package_cache()
    cache.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=cache))
    rows = []
    for subdir in channel.SUBDIRS:
        for file in sorted((output / subdir).glob("*.conda")):
            file.replace(part / file.name)
            moved = part / file.name
            rows.append(
                {
                    "file": file.name,
                    "subdir": subdir,
                    "sha256": sha256(moved),
                    "size": moved.stat().st_size,
                }
            )
    (part / "packages.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    part.chmod(0o755)
    part.replace(cache / key)
    found = cached(key)
    assert found is not None
    return found
