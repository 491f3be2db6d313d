"""Read and write the reports on stacks and images: JSON with sorted keys in ``build/reports``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builder.common import files, paths
from builder.environment.envs import Lock
from builder.image.images import Image
from builder.package.package_cache import Plan
from builder.package.rebuilds import Comparison
from builder.stack.stacks import Stack
from builder.timing.timings import Span, find_critical_path

SCHEMA_VERSION = 1


def get_stack_file(stack: str) -> Path:
    """Return the path of a stack's report."""
    return paths.REPORTS / f"{stack}.json"


def get_verification_file(stack: str) -> Path:
    """Return the path of the JSON that ``theano-fast verify`` writes for a stack."""
    return paths.REPORTS / f"{stack}-verify.json"


def get_timings_file(stack: str) -> Path:
    """Return the path of the report of a stack's build times.

    It is a separate file, because the times differ in each build.
    """
    return paths.REPORTS / f"{stack}-timings.json"


def get_image_file(stack: str) -> Path:
    """Return the path of the report of a stack's image."""
    return paths.REPORTS / f"{stack}-image.json"


def describe_stack(stack: Stack, plan: Plan, lock: Lock) -> dict[str, Any]:
    """Return the report of a stack's sources and packages.

    ``Build.run`` in ``pipeline.py`` adds the verification under the key ``verify``.
    """
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


def describe_image(image: Image, lock: Lock) -> dict[str, Any]:
    """Return the report of a stack's image.

    ``image_pipeline.py`` adds the verification (``verify``) and the build times (``seconds``).
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "stack": lock.stack,
        "lock": lock.digest,
        **asdict(image),
    }


def describe_rebuild(comparisons: Iterable[Comparison]) -> dict[str, Any]:
    """Return the report of a second build: each package's comparison with the first build."""
    return {
        "schema_version": SCHEMA_VERSION,
        "packages": {row.package: asdict(row) for row in comparisons},
    }


def describe_timings(
    stack: str, spans: Sequence[Span], needs: Mapping[str, Iterable[str]], jobs: int, cpus: int
) -> dict[str, Any]:
    """Return the report of a build's times.

    The key ``chain`` has the critical path: the recipes that determined the build's duration.

    Args:
        needs: the direct dependencies of each recipe.
        jobs: the number of recipes that were built at once.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "stack": stack,
        "jobs": jobs,
        "cpus": cpus,
        "chain": find_critical_path(spans, needs),
        "recipes": {
            span.recipe: {key: value for key, value in asdict(span).items() if key != "recipe"}
            for span in spans
        },
    }


def write(content: dict[str, Any], file: Path) -> None:
    """Write a report atomically, as JSON with sorted keys."""
    files.write_atomically(file, json.dumps(content, indent=1, sort_keys=True) + "\n")


def read(file: Path) -> dict[str, Any]:
    """Read a report; return {} if the file does not exist or is not JSON."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return content
