"""Compute the order of builds from chains of dependent recipes, and estimate the total duration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# The share of a recipe's CPU seconds in which it uses one core: configuring, linking, testing.
SERIAL_SHARE = 0.25


def compute_longest_chains(
    needs: Mapping[str, Iterable[str]], seconds: Mapping[str, float]
) -> dict[str, float]:
    """Compute, for each recipe, the CPU seconds of the longest chain that starts with the recipe.

    In a chain, each recipe depends on the preceding recipe.

    Args:
        needs: the dependencies of each recipe; a recipe comes after its dependencies. Dependencies
            that are not keys are ignored, because they are already built.
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
    """Simulate the build of recipes on an idle machine; return its wall seconds.

    Give the CPUs to the recipes in the order of their longest chains. A recipe gets as many of the
    remaining CPUs as it can use.

    Args:
        needs: the dependencies of each recipe; a recipe comes after its dependencies.
        seconds: the CPU seconds of each recipe.
        jobs: the maximum number of recipes that are built at once.
        cpus: the number of CPUs.
    """
    chains = compute_longest_chains(needs, seconds)
    remaining = dict(seconds)
    running: list[str] = []
    # The average number of CPUs that a recipe uses if all CPUs are free (Amdahl's law).
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
        # Advance the clock to the end of the recipe that finishes first.
        step = min(remaining[name] / speed for name, speed in speeds.items() if speed)
        clock += step
        for name, speed in speeds.items():
            remaining[name] -= step * speed
            if remaining[name] <= 1e-6:
                running.remove(name)
                del remaining[name]
    return clock
