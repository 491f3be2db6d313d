"""Where a build's time went: what was built when, and the chain that it waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.common import progress

WIDTH = 80


@dataclass(frozen=True)
class Span:
    """One recipe's build: seconds since the first began, and CPU seconds."""

    recipe: str
    begin: float
    end: float
    cpu_seconds: float


def chain(spans: Sequence[Span], needs: Mapping[str, Iterable[str]]) -> list[str]:
    """What the end waited for: the last recipe to end, the last of what it needs, and so on."""
    by_name = {span.recipe: span for span in spans}
    found: list[str] = []
    step = max(spans, key=lambda span: span.end, default=None)
    while step:
        found.append(step.recipe)
        before = [by_name[name] for name in needs[step.recipe] if name in by_name]
        step = max(before, key=lambda span: span.end, default=None)
    return found[::-1]


def draw(content: Mapping[str, Any], width: int = WIDTH) -> list[str]:
    """Its report as lines of text, a bar for each recipe, as they began; none of an empty one."""
    rows = sorted(content.get("recipes", {}).items(), key=lambda row: row[1]["begin"])
    if not rows:
        return []
    end = max(row["end"] for _, row in rows)
    total = sum(row["cpu_seconds"] for _, row in rows)
    names = max(len("recipe"), *(len(name) for name, _ in rows))
    head = f"{'recipe':<{names}}   {'start':>6} {'end':>6} {'CPU s':>6} {'share':>5}  "
    room = max(10, width - len(head) - 2)
    lines = [head.rstrip()]
    for name, row in rows:
        first = min(room - 1, round(row["begin"] / (end or 1) * room))
        last = max(first + 1, round(row["end"] / (end or 1) * room))
        on_chain = name in content["chain"]
        bar = " " * first + ("#" if on_chain else "-") * (last - first)
        share = row["cpu_seconds"] / (total or 1)
        begin, ended = (progress.seconds(row[key]) for key in ("begin", "end"))
        lines.append(
            f"{name:<{names}} {'*' if on_chain else ' '} {begin:>6} {ended:>6} "
            f"{row['cpu_seconds']:>6.0f} {share:>5.0%}  |{bar:<{room}}|"
        )
    of_chain = sum(content["recipes"][name]["cpu_seconds"] for name in content["chain"])
    cpus = content["cpus"]
    lines += [
        f"* the chain that the end waited for: {of_chain:.0f} of {total:.0f} CPU s",
        f"{progress.seconds(end)} on {cpus} CPU{'s' if cpus > 1 else ''}, busy with this for "
        f"{total / (end or 1) / cpus:.0%} of it",
    ]
    return lines
