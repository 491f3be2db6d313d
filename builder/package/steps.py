"""Announce the cost of a build before it starts, and print a line after each step of a command."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from builder.common import paths, processes, progress
from builder.package import package_cache
from builder.package.package_cache import Plan
from builder.source.sources import get_cached_path
from builder.stack.recipes import Recipe, Source
from builder.timing import forecast, schedule

# An announcement names at most NAMED_RECIPES recipes, the slowest first. It omits recipes of fewer
# than NAMED_CPU_SECONDS, unless all recipes take fewer.
NAMED_CPU_SECONDS = 60
NAMED_RECIPES = 3


class Step:
    """A step in progress.

    Args:
        title: the number and name of the step.
        expected_seconds: the estimated duration of the step; 0 if unknown.
        later_seconds: the estimated duration of all later steps.

    Attributes:
        describe: a function that returns a description of the progress. Another thread calls it.
        seconds_left: the estimated seconds until the end of this step. If it is None,
            ``expected_seconds`` gives the estimate.
        result: the result, set at the end. A step without a result prints nothing.
    """

    def __init__(self, title: str, expected_seconds: float, later_seconds: float) -> None:
        self.title = title
        self.describe: Callable[[], str] = str
        self.result = ""
        self.seconds_left: float | None = None
        self.began = time.monotonic()
        self._expected_seconds = expected_seconds
        self._later_seconds = later_seconds

    def format_line(self) -> str:
        """Format the live line: title, time left until the end of all steps, description."""
        seconds_left = self.seconds_left
        if seconds_left is None and self._expected_seconds:
            seconds_left = self.began + self._expected_seconds - time.monotonic()
        line = self.title
        # A step that takes longer than expected has no useful estimate.
        if seconds_left is not None and seconds_left > 0:
            line += f", {progress.format_estimate(seconds_left + self._later_seconds)} left"
        description = self.describe()
        return f"{line}: {description}" if description else line


class Steps:
    """The steps of a command, in order; they are numbered if there are several."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    @contextmanager
    def run_step(self, name: str, *, live: bool = True) -> Iterator[Step]:
        """Run a step as a context manager.

        If the step ends without an error, print its result and its duration.

        Args:
            name: one of the names of the steps.
            live: show a live line during the step. Pass False if a subprocess writes to the
                terminal.

        Raises:
            ValueError: the command has no step of this name.
        """
        if name not in self.names:
            raise ValueError(f"unknown step {name!r}: the steps are {', '.join(self.names)}")
        number = self.names.index(name) + 1
        numbered = len(self.names) > 1
        title = f"{number}/{len(self.names)} {name}" if numbered else name
        later_seconds = sum(map(forecast.estimate_stage_seconds, self.names[number:]))
        step = Step(title, forecast.estimate_stage_seconds(name), later_seconds)
        with progress.show_live_line(step.format_line) if live else nullcontext():
            yield step
        if step.result:
            seconds = time.monotonic() - step.began
            column = f"{title:<16}" if numbered else title
            progress.say(f"{column} {step.result}, {progress.format_duration(seconds)}")
            if name in forecast.STAGES:
                forecast.record_measurement("stages", name, round(seconds, 1))


def list_steps(missing: Iterable[Recipe], later: Sequence[str] = ()) -> Steps:
    """List the steps of a command: "fetch" and "packages" if they are needed, then ``later``.

    Args:
        missing: the recipes whose packages are not in the package cache.
        later: the names of the steps after the packages are built.
    """
    missing = list(missing)
    fetch = ["fetch"] if _find_absent_sources(missing) else []
    return Steps([*fetch, *(["packages"] if missing else []), *later])


def announce(
    name: str,
    plan: Plan,
    steps: Steps,
    *,
    jobs: int,
    origin: str = "",
) -> None:
    """Print the expected time, downloads and disk space of building a stack's missing recipes.

    Args:
        name: the name of the stack.
        plan: the recipes of the stack.
        steps: the steps of the command, from :func:`list_steps`.
        jobs: the number of recipes that are built at once.
        origin: the origin of the sources, such as "from ../sources.tar"; by default "to download".
    """
    missing = package_cache.find_missing(plan)
    if not missing:
        progress.say(f"{name}: all {len(plan.recipes)} recipes are built")
        return
    absent = _find_absent_sources(missing)
    cpu_seconds = forecast.estimate_cpu_seconds(missing)
    cpus = processes.count_cpus()
    needs = {recipe.name: plan.needs[recipe.name] for recipe in missing}
    seconds = schedule.estimate_duration(needs, cpu_seconds, jobs, cpus)
    seconds += sum(map(forecast.estimate_stage_seconds, steps.names))
    total, built = len(plan.recipes), len(plan.recipes) - len(missing)
    # An interrupted or failed build leaves its work directory.
    resumes = built and any(
        (paths.get_work_directory() / recipe.name).is_dir() for recipe in missing
    )
    if resumes:
        work = f"resuming: {built} of {total} recipes are built, {len(missing)} to build"
    else:
        work = f"{len(missing)} of {total} recipes to build"
    progress.say(
        f"{name}: {work}, about {progress.format_estimate(seconds)} "
        f"on {cpus} core{'s' if cpus > 1 else ''}"
    )
    rows = {"packages": _describe_cpu_time(cpu_seconds), "cache": _describe_disk(missing, absent)}
    if absent:
        suffix = f", {origin}" if origin else " to download"
        rows = {"fetch": _describe_sources(absent) + suffix, **rows}
    if len(steps.names) > 1:
        rows = {"steps": ", ".join(steps.names), **rows}
    if "environment" in steps.names:
        rows["environment"] = progress.display_path(paths.ENVIRONMENTS / name)
    for key, text in rows.items():
        progress.say(f"  {key:<12} {text}")


def describe_arrived(absent: Sequence[Source]) -> str:
    """Describe the progress of a fetch, such as "3 of 10 files, 20 MB of 57 MB".

    Args:
        absent: the sources that were not in the cache before the fetch.
    """
    files, size = 0, 0
    for source in absent:
        file = get_cached_path(source)
        try:
            if file.exists():
                files += 1
                size += file.stat().st_size
            else:
                size += sum(part.stat().st_size for part in file.parent.glob(".part-*"))
        except OSError:
            # Another thread renamed or removed the file after this function had listed it.
            continue
    arrived, total = map(progress.format_size, (size / 1e6, forecast.estimate_megabytes(absent)))
    return f"{files} of {len(absent)} files, {arrived} of {total}"


def describe_fetched(sources: Sequence[Source]) -> str:
    """Describe the number and the total size of sources in the cache; "" without sources."""
    if not sources:
        return ""
    size = sum(get_cached_path(source).stat().st_size for source in sources)
    return f"{_count_files(sources)}, {progress.format_size(size / 1e6)}"


def _find_absent_sources(recipes: Iterable[Recipe]) -> list[Source]:
    return forecast.find_absent_sources({file for recipe in recipes for file in recipe.sources})


def _describe_sources(absent: Sequence[Source]) -> str:
    megabytes = forecast.estimate_megabytes(absent)
    return f"{_count_files(absent)}, {progress.format_size(megabytes)}"


def _count_files(sources: Sequence[Source]) -> str:
    return f"{len(sources)} file{'s' if len(sources) != 1 else ''}"


def _describe_cpu_time(cpu_seconds: dict[str, float]) -> str:
    """Describe the total CPU time of recipes, and the CPU time of the slowest recipes."""
    names = sorted(cpu_seconds, key=lambda name: -cpu_seconds[name])
    large = [name for name in names if cpu_seconds[name] >= NAMED_CPU_SECONDS] or names
    rows = [
        f"{name} {progress.format_estimate(cpu_seconds[name])}" for name in large[:NAMED_RECIPES]
    ]
    total = progress.format_estimate(sum(cpu_seconds.values()))
    return f"{total} of CPU time: {', '.join(rows)}"


def _describe_disk(missing: Sequence[Recipe], absent: Sequence[Source]) -> str:
    """Describe the path of the cache and the disk space that a build needs there.

    If less space is free, also describe the free space.
    """
    needed = forecast.estimate_disk_megabytes(missing, forecast.estimate_megabytes(absent))
    cache = paths.get_cache()
    existing = next(directory for directory in (cache, *cache.parents) if directory.exists())
    free = shutil.disk_usage(existing).free / 1e6
    text = f"{progress.display_path(cache)}, about {progress.format_size(needed)}"
    return text if free > needed else f"{text}; only {progress.format_size(free)} are free"
