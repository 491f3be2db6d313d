"""Find the critical path of a build, and draw the times of its recipes as a text chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.common import progress

# The width of the chart in characters.
WIDTH = 80


@dataclass(frozen=True)
class Span:
    """The time span of a recipe's build.

    Attributes:
        recipe: the name of the recipe.
        begin: the start, in wall seconds since the start of the whole build.
        end: the end, in wall seconds since the start of the whole build.
        cpu_seconds: the CPU seconds of the recipe's build.
    """

    recipe: str
    begin: float
    end: float
    cpu_seconds: float


def find_critical_path(spans: Sequence[Span], needs: Mapping[str, Iterable[str]]) -> list[str]:
    """Find the chain of recipes that determined the end of a build, from first to last.

    The chain ends with the recipe that ended last. Each other recipe in the chain is a dependency
    of the next recipe: the dependency that ended last.

    Args:
        spans: the time spans of the recipes.
        needs: the dependencies of each recipe.
    """
    by_name = {span.recipe: span for span in spans}
    path: list[str] = []
    span = max(spans, key=lambda span: span.end, default=None)
    while span:
        path.append(span.recipe)
        dependencies = [by_name[name] for name in needs[span.recipe] if name in by_name]
        span = max(dependencies, key=lambda span: span.end, default=None)
    return path[::-1]


def draw(document: Mapping[str, Any], width: int = WIDTH) -> list[str]:
    """Draw a chart as lines of text: a bar for each recipe, in the order of their start.

    Args:
        document: the result of ``report.describe_timings``.
        width: the width of the chart in characters.

    Returns:
        The lines; no lines if the document has no recipes.
    """
    rows = sorted(document.get("recipes", {}).items(), key=lambda row: row[1]["begin"])
    if not rows:
        return []
    end = max(row["end"] for _, row in rows)
    total = sum(row["cpu_seconds"] for _, row in rows)
    name_width = max(len("recipe"), *(len(name) for name, _ in rows))
    head = f"{'recipe':<{name_width}}   {'start':>6} {'end':>6} {'CPU s':>6} {'share':>5}  "
    bar_width = max(10, width - len(head) - 2)
    lines = [head.rstrip()]
    for name, row in rows:
        first = min(bar_width - 1, round(row["begin"] / (end or 1) * bar_width))
        end_column = max(first + 1, round(row["end"] / (end or 1) * bar_width))
        is_critical = name in document["chain"]
        bar = " " * first + ("#" if is_critical else "-") * (end_column - first)
        share = row["cpu_seconds"] / (total or 1)
        begin, ended = (progress.format_duration(row[key]) for key in ("begin", "end"))
        lines.append(
            f"{name:<{name_width}} {'*' if is_critical else ' '} {begin:>6} {ended:>6} "
            f"{row['cpu_seconds']:>6.0f} {share:>5.0%}  |{bar:<{bar_width}}|"
        )
    critical = sum(document["recipes"][name]["cpu_seconds"] for name in document["chain"])
    cpus = document["cpus"]
    lines += [
        f"* critical path: {critical:.0f} of {total:.0f} CPU s",
        f"{progress.format_duration(end)} on {cpus} CPU{'s' if cpus > 1 else ''}, "
        f"of which the builds used {total / (end or 1) / cpus:.0%}",
    ]
    return lines
