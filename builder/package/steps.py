"""What a command will do, told before it begins, and a line for each of its steps."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from builder.common import paths, processes, progress
from builder.package import packages as store
from builder.package.packages import Plan
from builder.source.sources import cache_file
from builder.stack.recipes import Recipe, Source
from builder.timing import forecast, schedule


class Step:
    """A step under way.

    Attributes:
        line: tells how far it is; asked from another thread.
        left: the seconds until all steps are done, if they are known.
        did: what it has done, once it has; nothing is said of a step that did nothing.
    """

    def __init__(self, title: str, expected: float, later: float) -> None:
        self.title = title
        self.line: Callable[[], str] = str
        self.did = ""
        self.later = later
        self._expected = expected
        self.began = time.monotonic()
        self.left: float | None = None

    def text(self) -> str:
        """The line that is shown while it is under way."""
        left = self.left
        if left is None and self._expected:
            left = self.began + self._expected - time.monotonic()
        # What takes longer than it did is no longer known.
        known = left is not None and left > 0
        told = f", {progress.about(left + self.later)} left" if known and left else ""
        line = self.line()
        return f"{self.title}{told}{f': {line}' if line else ''}"


class Steps:
    """The steps of a command, in order."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = tuple(names)

    @contextmanager
    def step(self, name: str, *, live: bool = True) -> Iterator[Step]:
        """Do a step; when it has ended well, what it did is said in one line.

        Args:
            live: show meanwhile how far it is; not where others write to the terminal.
        """
        counted = name in self.names
        number = self.names.index(name) + 1 if counted else 0
        title = f"{number}/{len(self.names)} {name}" if counted else name
        later = sum(forecast.stage_seconds(each) for each in self.names[number:])
        step = Step(title, forecast.stage_seconds(name), later if counted else 0.0)
        with progress.shown(step.text) if live else nullcontext():
            yield step
        if step.did:
            took = time.monotonic() - step.began
            column = f"{title:<16}" if counted else title
            progress.say(f"{column} {step.did}, {progress.seconds(took)}")
            if name in forecast.STAGES:
                forecast.remember("stages", name, round(took, 1))


def announce(
    name: str,
    plan: Plan,
    then: Sequence[str] = (),
    *,
    jobs: int,
    origin: str = "",
) -> Steps:
    """Tell what it takes to have a stack's packages, and what follows; the steps.

    Args:
        then: the steps after the packages.
        origin: where sources come from, if not by a download.
    """
    missing = store.missing(plan)
    if not missing:
        progress.say(f"{name}: all {len(plan.recipes)} recipes are built")
        return Steps(then)
    absent = forecast.absent({source for recipe in missing for source in recipe.sources})
    steps = Steps([*(["fetch"] if absent else []), "packages", *then])
    seconds = forecast.cpu_seconds(missing)
    cpus = processes.cpus()
    needs = {recipe.name: plan.needs[recipe.name] for recipe in missing}
    takes = schedule.duration(needs, seconds, jobs, cpus)
    takes += sum(forecast.stage_seconds(stage) for stage in then)
    built = len(plan.recipes) - len(missing)
    # Its directory stays where a build was interrupted, or failed.
    begun = built and any((paths.work() / recipe.name).is_dir() for recipe in missing)
    progress.say(
        f"{name}: "
        + (f"go on: {built} of {len(plan.recipes)} recipes are built, " if begun else "")
        + f"{len(missing)}{'' if begun else f' of {len(plan.recipes)} recipes'} to build, "
        + f"about {progress.about(takes)} on {cpus} core{'s' if cpus > 1 else ''}"
    )
    for what, told in (
        *([("steps", ", ".join(steps.names))] if len(steps.names) > 1 else []),
        *([("fetch", _fetching(absent, origin))] if absent else []),
        ("packages", _largest(seconds)),
        ("cache", _room(missing, forecast.megabytes(absent))),
        *(
            [("environment", progress.place(paths.ENVIRONMENTS / name))]
            if "environment" in then
            else []
        ),
    ):
        progress.say(f"  {what:<12} {told}")
    return steps


def _fetching(absent: Sequence[Source], origin: str) -> str:
    size = progress.size(forecast.megabytes(absent))
    return f"{_files(len(absent))}, {size}" + (f", {origin}" if origin else " to download")


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"


def _largest(seconds: dict[str, float]) -> str:
    """The CPU time that recipes take, and which take most of it."""
    ordered = sorted(seconds, key=lambda name: -seconds[name])
    told = f"{progress.about(sum(seconds.values()))} of CPU time"
    large = [name for name in ordered if seconds[name] >= 60][:3] or ordered[:3]
    return f"{told}: " + ", ".join(f"{name} {progress.about(seconds[name])}" for name in large)


def _room(missing: Sequence[Recipe], download: float) -> str:
    """The cache, what will be written there, and what is free if that is less."""
    needed = forecast.disk(missing, download)
    cache = paths.cache()
    there = next(each for each in (cache, *cache.parents) if each.exists())
    free = shutil.disk_usage(there).free / 1e6
    told = f"{progress.place(cache)}, about {progress.size(needed)}"
    return told if free > needed else f"{told}; only {progress.size(free)} are free"


def arrived(absent: Sequence[Source]) -> str:
    """How much of the sources that were to come is there."""
    come, size = 0, 0
    for source in absent:
        file = cache_file(source)
        try:
            if file.exists():
                come += 1
                size += file.stat().st_size
            else:
                size += sum(part.stat().st_size for part in file.parent.glob(".part-*"))
        except OSError:
            # It got its name at this very moment.
            continue
    return f"{come} of {len(absent)} files, {size / 1e6:.0f} of {_total(absent)}"


def fetched(absent: Sequence[Source]) -> str:
    """What came of sources that were not there; nothing if none was."""
    if not absent:
        return ""
    size = sum(cache_file(source).stat().st_size for source in absent)
    return f"{_files(len(absent))}, {progress.size(size / 1e6)}"


def _total(absent: Sequence[Source]) -> str:
    return progress.size(forecast.megabytes(absent))
