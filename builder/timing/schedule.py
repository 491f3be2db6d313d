"""In which order recipes are built, and how long that takes: the longest chain comes first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Of a recipe's CPU seconds, those in which it keeps one core busy whatever there is: configuring,
# linking, testing.
SERIAL = 0.25


def chains(needs: Mapping[str, Iterable[str]], seconds: Mapping[str, float]) -> dict[str, float]:
    """The CPU seconds of the longest chain that begins with each recipe: what ends last of all.

    Args:
        needs: recipes, dependencies first; of what they need, only what is among them counts.
        seconds: each one's own.
    """
    found = dict.fromkeys(needs, 0.0)
    for name in reversed(list(needs)):
        found[name] += seconds[name]
        for other in needs[name]:
            if other in found:
                found[other] = max(found[other], found[name])
    return found


def duration(
    needs: Mapping[str, Iterable[str]], seconds: Mapping[str, float], jobs: int, cpus: int
) -> float:
    """How long it takes to build recipes on an idle machine, ``jobs`` at once.

    What is on the longest chain gets as many CPUs as it can use; what is beside it, the others.
    """
    chain = chains(needs, seconds)
    left = dict(seconds)
    running: list[str] = []
    alone = 1 / (SERIAL + (1 - SERIAL) / cpus)
    clock = 0.0
    while left:
        ready = [
            name for name in left if name not in running and not left.keys() & set(needs[name])
        ]
        ready.sort(key=lambda name: -chain[name])
        running += ready[: jobs - len(running)]
        running.sort(key=lambda name: -chain[name])
        free = float(cpus)
        speeds: dict[str, float] = {}
        for name in running:
            speeds[name] = min(alone, free)
            free -= speeds[name]
        step = min(left[name] / speed for name, speed in speeds.items() if speed)
        clock += step
        for name, speed in speeds.items():
            left[name] -= step * speed
            if left[name] <= 1e-6:
                running.remove(name)
                del left[name]
    return clock
