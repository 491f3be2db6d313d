"""What a build was made of and how it proved itself, as sorted JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builder.common import paths
from builder.environment.envs import Lock
from builder.image.images import Image
from builder.package.packages import Plan
from builder.package.rebuilds import Comparison
from builder.stack.stacks import Stack
from builder.timing.timings import Span, chain

SCHEMA_VERSION = 1


def file(stack: str) -> Path:
    """Where a stack's report is."""
    return paths.REPORTS / f"{stack}.json"


def verification(stack: str) -> Path:
    """Where ``theano-fast verify`` writes its JSON for a stack's environment."""
    return paths.REPORTS / f"{stack}-verify.json"


def timings(stack: str) -> Path:
    """Where it is told what a stack's last build took: apart, for it is another each time."""
    return paths.REPORTS / f"{stack}-timings.json"


def image_file(stack: str) -> Path:
    """Where the report of a stack's image is."""
    return paths.REPORTS / f"{stack}-image.json"


def document(stack: Stack, plan: Plan, lock: Lock) -> dict[str, Any]:
    """The report of one stack, but for its verification."""
    return {
        "schema_version": SCHEMA_VERSION,
        "stack": stack.name,
        "axes": stack.axes,
        "lock": lock.digest,
        "sources": {
            source.file: source.sha256 for recipe in plan.recipes for source in recipe.sources
        },
        "packages": {
            package.path: {"sha256": package.sha256, "size": package.size}
            for package in lock.packages
        },
    }


def image_document(image: Image, lock: Lock) -> dict[str, Any]:
    """The report of a stack's image, but for its verification and the time it took."""
    return {
        "schema_version": SCHEMA_VERSION,
        "stack": lock.stack,
        "lock": lock.digest,
        **asdict(image),
    }


def rebuild_document(comparisons: Iterable[Comparison]) -> dict[str, Any]:
    """What came of a second build."""
    return {
        "schema_version": SCHEMA_VERSION,
        "packages": {item.package: asdict(item) for item in comparisons},
    }


def timings_document(
    stack: str, spans: Sequence[Span], needs: Mapping[str, Iterable[str]], jobs: int, cpus: int
) -> dict[str, Any]:
    """What a build took."""
    return {
        "schema_version": SCHEMA_VERSION,
        "stack": stack,
        "jobs": jobs,
        "cpus": cpus,
        "chain": chain(spans, needs),
        "recipes": {
            span.recipe: {key: value for key, value in asdict(span).items() if key != "recipe"}
            for span in spans
        },
    }


def write(content: dict[str, Any], file: Path) -> None:
    """Write JSON with sorted keys, all of it or nothing."""
    write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", file)


def write_text(text: str, file: Path) -> None:
    """Write a text, all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def read(file: Path) -> dict[str, Any]:
    """A report's JSON; empty where there is none."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return content
