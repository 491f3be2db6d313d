"""Order builds by the longest chain of recipes that depend on them, and estimate their duration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Share of a recipe's CPU seconds that cannot use more than one core: configuring, linking, testing.
SERIAL_SHARE = 0.25


def compute_longest_chains(
    needs: Mapping[str, Iterable[str]], seconds: Mapping[str, float]
) -> dict[str, float]:
    """Compute for each recipe the CPU seconds of the longest chain that starts with it.

    In a chain, each recipe needs the preceding recipe.

    Args:
        needs: the dependencies of each recipe, in an order with dependencies first. Dependencies
            that are not keys are ignored: they are built already.
        seconds: the CPU seconds of each recipe.
    """
    chains = dict.fromkeys(needs, 0.0)
    for name in reversed(list(needs)):
        chains[name] += seconds[name]
        for dependency in needs[name]:
            if dependency in chains:
                chains[dependency] = max(chains[dependency], chains[name])
    return chains


def estimate_duration(
    needs: Mapping[str, Iterable[str]], seconds: Mapping[str, float], jobs: int, cpus: int
) -> float:
    """Simulate building recipes on an idle machine; return the seconds it takes.

    The recipe with the longest chain gets as many CPUs as it can use, the others share the rest.

    Args:
        needs: the dependencies of each recipe, in an order with dependencies first.
        seconds: the CPU seconds of each recipe.
        jobs: the number of recipes that are built at once.
        cpus: the number of CPUs.
    """
    chains = compute_longest_chains(needs, seconds)
    remaining = dict(seconds)
    running: list[str] = []
    # The average number of CPUs that a recipe uses if all are free (Amdahl's law).
    usable = 1 / (SERIAL_SHARE + (1 - SERIAL_SHARE) / cpus)
    clock = 0.0
    while remaining:
        ready = [
            name
            for name in remaining
            if name not in running and not remaining.keys() & set(needs[name])
        ]
        ready.sort(key=lambda name: -chains[name])
        running += ready[: jobs - len(running)]
        running.sort(key=lambda name: -chains[name])
        free = float(cpus)
        speeds: dict[str, float] = {}
        for name in running:
            speeds[name] = min(usable, free)
            free -= speeds[name]
        # Advance to the end of the recipe that finishes first.
        step = min(remaining[name] / speed for name, speed in speeds.items() if speed)
        clock += step
        for name, speed in speeds.items():
            remaining[name] -= step * speed
            if remaining[name] <= 1e-6:
                running.remove(name)
                del remaining[name]
    return clock
