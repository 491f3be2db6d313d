"""Build the missing recipes of a plan in parallel, each in its own process.

Recipes that start the longest chain of dependent recipes are built first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from builder.common import log_excerpt, paths, processes, progress
from builder.common.errors import BuildFailed, DiskFull
from builder.package import channel, engine
from builder.package.channel import Package
from builder.package.package_cache import Plan, find_cached, store_packages
from builder.package.steps import Step
from builder.stack.recipes import Recipe
from builder.timing import forecast, schedule
from builder.timing.timings import Span

# Niceness of the builds that are not on the critical path. At equal priority, these builds would
# slow down the critical path, which determines the end of all builds.
BACKGROUND_NICENESS = 10
# Recipes that take fewer CPU seconds start first, because they hardly delay other recipes.
SHORT_CPU_SECONDS = 5.0
# Seconds between updates of priorities and of the estimated time left.
UPDATE_INTERVAL = 1.0
# The pace is the ratio of the elapsed seconds to the estimated seconds of the finished work. Once
# this number of estimated seconds is done, the pace corrects the time left.
PACE_SECONDS = 30.0
# Limits of the pace, because one slow recipe does not predict the time of other recipes.
MIN_PACE, MAX_PACE = 0.2, 5.0
# While a recipe is building, at least this share of its estimated CPU seconds counts as remaining.
# The share matters if the recipe takes longer than estimated.
MIN_SHARE_LEFT = 1 / 50
# If a build fails with fewer bytes free on its file system, the error is DiskFull.
MIN_FREE_BYTES = 1 << 24


@dataclass(frozen=True)
class Built:
    """The packages of each recipe of a plan, and the time spans of the builds."""

    packages: dict[str, list[Package]]
    spans: list[Span]


def build_missing(
    plan: Plan,
    *,
    jobs: int = 2,
    engine_name: str = engine.ENGINES[0],
    step: Step | None = None,
) -> Built:
    """Build the recipes of a plan whose packages are not in the package cache.

    Args:
        plan: all recipes of a stack.
        jobs: the maximum number of recipes that are built at once.
        engine_name: one of ``engine.ENGINES``.
        step: the step that shows the progress.

    Returns:
        The packages of all recipes of the plan, also of recipes that were in the cache.

    Raises:
        BuildFailed: a recipe failed; the message has the reason, a log excerpt and the log's path.
        DiskFull: the file system of the cache is full.
        KeyboardInterrupt: the user interrupted; the message has the number of built recipes.
    """
    packages: dict[str, list[Package]] = {}
    for recipe in plan.recipes:
        cached = find_cached(plan.keys[recipe.name])
        if cached is not None:
            packages[recipe.name] = cached
    missing = [recipe for recipe in plan.recipes if recipe.name not in packages]
    scheduler = _Scheduler(plan, packages, engine_name, jobs, step or Step("packages", 0.0, 0.0))
    try:
        scheduler.run(missing)
    except KeyboardInterrupt:
        message = f"{len(packages)} of {len(plan.recipes)} recipes are built"
        raise KeyboardInterrupt(message) from None
    return Built(packages, scheduler.spans)


@dataclass
class _Build:
    """A build in progress.

    Attributes:
        process: the engine's process.
        lock: the file descriptor of the lock on the work directory.
        work: the work directory.
        began: the value of time.monotonic() at the start of the build.
        niceness: the niceness of the process, relative to this process.
    """

    recipe: Recipe
    process: processes.Process
    lock: int
    work: Path
    began: float
    niceness: int = 0


class _Scheduler:
    """Starts each build of a plan when its dependencies are built, and collects the packages.

    Attributes:
        packages: the packages of each built recipe, by name of the recipe.
        running: the builds in progress, by name of the recipe.
        waiting: the names of recipes that another process is building.
        spans: the time spans of the finished builds.
        began: the value of time.monotonic() when the scheduler was created.
    """

    def __init__(
        self,
        plan: Plan,
        packages: dict[str, list[Package]],
        engine_name: str,
        jobs: int,
        step: Step,
    ) -> None:
        self.plan = plan
        self.packages = packages
        self.engine_name = engine_name
        self.jobs = jobs
        self.step = step
        self.running: dict[str, _Build] = {}
        self.waiting: set[str] = set()
        self.spans: list[Span] = []
        self.began = time.monotonic()
        self._last_update = 0.0
        self._total_seconds = 0.0

    def run(self, missing: list[Recipe]) -> None:
        """Build recipes, at most ``jobs`` at once; if a build fails, kill the other builds."""
        build_progress = progress.BuildProgress(len(missing))
        self.step.describe = build_progress.describe
        seconds = forecast.estimate_cpu_seconds(missing)
        needs = {recipe.name: self.plan.needs[recipe.name] for recipe in missing}
        chains = schedule.compute_longest_chains(needs, seconds)
        pending = sorted(
            missing,
            key=lambda recipe: (seconds[recipe.name] >= SHORT_CPU_SECONDS, -chains[recipe.name]),
        )
        # Wait for indirect dependencies too: the channel of a build contains them. A direct
        # dependency may be in the package cache while an indirect dependency is not.
        closures = {recipe.name: self.plan.collect_needs(recipe.name) for recipe in pending}
        try:
            while pending or self.running:
                for recipe in list(pending):
                    if len(self.running) >= self.jobs:
                        break
                    if closures[recipe.name] <= self.packages.keys():
                        self._start(recipe, build_progress, pending)
                self._update(seconds)
                build_progress.refresh(self.step.format_line)
                self._collect(build_progress)
                time.sleep(0.1)
        finally:
            for build in self.running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(build.process.pid, signal.SIGKILL)
                build.process.wait()
                os.close(build.lock)

    def _update(self, seconds: dict[str, float]) -> None:
        """Update the builds' priorities and the step's time left, once per UPDATE_INTERVAL.

        Args:
            seconds: the estimated CPU seconds of each recipe.
        """
        now = time.monotonic()
        if now - self._last_update < UPDATE_INTERVAL:
            return
        self._last_update = now
        remaining = {name: cost for name, cost in seconds.items() if name not in self.packages}
        sessions = (build.process.pid for build in self.running.values())
        used_seconds = processes.measure_cpu_seconds(sessions)
        for name, build in self.running.items():
            remaining[name] = max(
                remaining[name] * MIN_SHARE_LEFT, remaining[name] - used_seconds[build.process.pid]
            )
        needs = {name: self.plan.needs[name] for name in self.plan.needs if name in remaining}
        self._set_priorities(schedule.compute_longest_chains(needs, remaining))
        cpus = processes.count_cpus()
        seconds_left = schedule.estimate_duration(needs, remaining, self.jobs, cpus)
        self._total_seconds = max(self._total_seconds, seconds_left)
        done = self._total_seconds - seconds_left
        pace = (now - self.began) / done if done > PACE_SECONDS else 1.0
        self.step.seconds_left = seconds_left * min(max(pace, MIN_PACE), MAX_PACE)

    def _set_priorities(self, chains: dict[str, float]) -> None:
        """Give the build with the longest chain normal priority, and other builds a lower priority.

        Args:
            chains: the CPU seconds of the longest chain that starts with each recipe.
        """
        critical = max(self.running, key=lambda name: chains[name], default="")
        for name, build in self.running.items():
            niceness = 0 if name == critical else BACKGROUND_NICENESS
            if niceness != build.niceness:
                processes.lower_priority(build.process.pid, niceness)
                build.niceness = niceness

    def _start(
        self, recipe: Recipe, build_progress: progress.BuildProgress, pending: list[Recipe]
    ) -> None:
        """Start a build; if another process is building the recipe, leave it in ``pending``.

        Args:
            pending: the recipes to build. A started or built recipe is removed.
        """
        work = paths.get_work_directory() / recipe.name
        work.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{work}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            if recipe.name not in self.waiting:
                progress.say(f"waiting  {recipe.name}: another process is building it")
                self.waiting.add(recipe.name)
            return
        pending.remove(recipe)
        # The other process may have finished the recipe.
        if (cached := find_cached(self.plan.keys[recipe.name])) is not None:
            os.close(lock)
            self.packages[recipe.name] = cached
            build_progress.total -= 1
            return
        process = self._start_engine(recipe, work)
        self.running[recipe.name] = _Build(recipe, process, lock, work, time.monotonic())
        build_progress.start(recipe.name, _get_log_path(recipe))

    def _start_engine(self, recipe: Recipe, work: Path) -> processes.Process:
        """Start the engine on a recipe, with an empty work directory and its own channel."""
        shutil.rmtree(work)
        # The engine reads a package's tests from the unpacked copy in its own cache. Remove this
        # copy: an earlier build may have made a package with the same name, version and build
        # string.
        for output in recipe.outputs:
            stem = f"{output.name}-{output.version}-{output.build}"
            shutil.rmtree(paths.get_engine_cache() / "pkgs" / stem, ignore_errors=True)
        dependencies = [
            package
            for name in sorted(self.plan.collect_needs(recipe.name))
            for package in self.packages[name]
        ]
        # The channel has only the recipe's dependencies, so the engine installs no other package.
        channel.add_packages(dependencies, work / "channel")
        request = engine.Request(
            recipe=str(recipe.path),
            variant=self.plan.variant,
            channel=str(work / "channel"),
            output=str(work / "output"),
            result=str(work / "result.json"),
            engine=self.engine_name,
        )
        engine.write_request(request, work / "request.json")
        return processes.start(
            [sys.executable, "-m", "builder.package.engine", work / "request.json"],
            env=engine.make_environment(paths.get_engine_cache()),
            log=_get_log_path(recipe),
            cwd=paths.ROOT,
        )

    def _collect(self, build_progress: progress.BuildProgress) -> None:
        """Store the packages of each build that has ended, and record its duration.

        Raises:
            BuildFailed: a build failed.
            DiskFull: a build failed because the file system is full.
        """
        for name, build in list(self.running.items()):
            if build.process.poll() is None:
                continue
            del self.running[name]
            try:
                if build.process.returncode != 0:
                    raise _explain_failure(build)
                result = json.loads((build.work / "result.json").read_text(encoding="utf-8"))
                self.packages[name] = store_packages(build.work / "output", self.plan.keys[name])
                shutil.rmtree(build.work)
            finally:
                os.close(build.lock)
            cpu_seconds = result["cpu_seconds"]
            build_progress.finish(name, cpu_seconds)
            begin, end = (moment - self.began for moment in (build.began, time.monotonic()))
            self.spans.append(Span(name, round(begin, 1), round(end, 1), cpu_seconds))
            keys = ("cpu_seconds", "wall_seconds")
            measurement = {key: result[key] for key in keys if key in result}
            forecast.record_measurement("recipes", build.recipe.path.name, measurement)


def _get_log_path(recipe: Recipe) -> Path:
    return paths.LOGS / f"{recipe.name}.log"


def _explain_failure(build: _Build) -> BuildFailed | DiskFull:
    """Return the error of a build that failed."""
    name = build.recipe.name
    log = _get_log_path(build.recipe)
    text = log.read_text(encoding="utf-8", errors="replace")
    if (
        shutil.disk_usage(build.work).free < MIN_FREE_BYTES
        or "No space left on device" in text[-10_000:]
    ):
        return DiskFull(
            f"recipe {name}: no space left below {build.work}",
            "free some space, or set THEANO_FAST_CACHE to a larger file system; "
            "the next build resumes here",
        )
    reason = log_excerpt.summarize_failure(text) or f"exit status {build.process.returncode}"
    excerpt = "\n".join(f"  | {line}" for line in log_excerpt.extract_excerpt(text))
    return BuildFailed(
        f"recipe {name} failed: {reason}\n{excerpt}",
        f"the whole log: {progress.display_path(log)}\n"
        f"  -> the work directory, until the next build: {build.work}\n"
        "  -> fix the cause and run again: the build resumes here; --verbose shows the logs",
    )
