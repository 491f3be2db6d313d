"""Build a stack's recipes, each only when its inputs changed, several at a time."""

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

from builder.common import complaints, paths, processes, progress
from builder.common.errors import BuildFailed, DiskFull
from builder.package import channel, engine
from builder.package.channel import Package
from builder.package.packages import Plan, cached, store
from builder.package.steps import Step
from builder.stack.recipes import Recipe
from builder.timing import forecast, schedule
from builder.timing.timings import Span

# What is beside the longest chain takes what that leaves: each recipe would use all cores, and two
# at once would each have half of them, while the end waits for the one.
BESIDE = 10
# CPU seconds below which a recipe is no work.
LIGHT = 5.0
# Seconds between looks at how far builds are, and of work done before its pace is known.
LOOK, KNOWN = 1.0, 30.0


def build(
    plan: Plan,
    *,
    jobs: int = 2,
    engine_name: str = engine.ENGINES[0],
    step: Step | None = None,
    spans: list[Span] | None = None,
) -> dict[str, list[Package]]:
    """Build what is not in the package cache; packages by recipe.

    Args:
        step: the step that this is, which tells how far it is.
        spans: what was built when is added to it.

    Raises:
        BuildFailed: a recipe failed; the message has its reason, last lines and log.
        DiskFull: the cache's file system has no room.
    """
    packages: dict[str, list[Package]] = {}
    for recipe in plan.recipes:
        found = cached(plan.keys[recipe.name])
        if found is not None:
            packages[recipe.name] = found
    pending = [recipe for recipe in plan.recipes if recipe.name not in packages]
    if pending:
        builds = _Builds(plan, packages, engine_name, jobs, step or Step("packages", 0.0, 0.0))
        try:
            builds.run(pending)
        except KeyboardInterrupt:
            told = f"{len(packages)} of {len(plan.recipes)} recipes are built"
            raise KeyboardInterrupt(told) from None
        if spans is not None:
            spans += builds.spans
    return packages


@dataclass
class _Running:
    """A recipe's build under way."""

    recipe: Recipe
    process: processes.Process
    lock: int
    work: Path
    began: float
    niceness: int = 0


class _Builds:
    """Builds of one plan: starts what is ready, collects what has ended."""

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
        self.running: dict[str, _Running] = {}
        self.waiting: set[str] = set()
        self.spans: list[Span] = []
        self.began = time.monotonic()
        self._looked = 0.0
        self._in_all = 0.0

    def run(self, pending: list[Recipe]) -> None:
        """Build ``pending``, at most ``jobs`` at once; on a failure stop the others."""
        table = progress.Progress(len(pending))
        self.step.line = table.line
        seconds = forecast.cpu_seconds(pending)
        needs = {recipe.name: self.plan.needs[recipe.name] for recipe in pending}
        # What takes seconds starts first, then what the end waits for longest: later the one would
        # stand between two of the others.
        chains = schedule.chains(needs, seconds)
        pending = sorted(
            pending, key=lambda recipe: (seconds[recipe.name] >= LIGHT, -chains[recipe.name])
        )
        # All of it: what of it is direct may be in the cache without the rest.
        closures = {recipe.name: self.plan.closure(recipe.name) for recipe in pending}
        try:
            while pending or self.running:
                for recipe in list(pending):
                    if len(self.running) >= self.jobs:
                        break
                    if closures[recipe.name] <= self.packages.keys():
                        self._start(recipe, table, pending)
                self._look(seconds)
                table.tick(self.step.text)
                self._collect(table)
                time.sleep(0.1)
        finally:
            for build in self.running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(build.process.pid, signal.SIGKILL)
                build.process.wait()
                os.close(build.lock)

    def _rank(self, chains: dict[str, float]) -> None:
        """Let what is beside the longest of ``chains`` give way to it: all would end together."""
        longest = max(self.running, key=lambda name: chains[name], default="")
        for name, build in self.running.items():
            niceness = 0 if name == longest else BESIDE
            if niceness != build.niceness:
                processes.give_way(build.process.pid, niceness)
                build.niceness = niceness

    def _look(self, seconds: dict[str, float]) -> None:
        """See what is left: rank what runs, and tell the step how long it will take."""
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        left = {name: each for name, each in seconds.items() if name not in self.packages}
        spent = processes.cpu_seconds(build.process.pid for build in self.running.values())
        for name, build in self.running.items():
            # What takes longer than was thought has always something left.
            left[name] = max(left[name] / 50, left[name] - spent[build.process.pid])
        needs = {name: self.plan.needs[name] for name in self.plan.needs if name in left}
        self._rank(schedule.chains(needs, left))
        expected = schedule.duration(needs, left, self.jobs, processes.cpus())
        self._in_all = max(self._in_all, expected)
        done = self._in_all - expected
        pace = (now - self.began) / done if done > KNOWN else 1.0
        self.step.left = expected * min(max(pace, 0.2), 5.0)

    def _start(self, recipe: Recipe, table: progress.Progress, pending: list[Recipe]) -> None:
        work = paths.work() / recipe.name
        work.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{work}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            if recipe.name not in self.waiting:
                progress.say(f"waiting  {recipe.name}: another build of it is under way")
                self.waiting.add(recipe.name)
            return
        pending.remove(recipe)
        if (found := cached(self.plan.keys[recipe.name])) is not None:
            os.close(lock)
            self.packages[recipe.name] = found
            table.total -= 1
            return
        process = self._process(recipe, work)
        self.running[recipe.name] = _Running(recipe, process, lock, work, time.monotonic())
        table.started(recipe.name, self._log(recipe))

    def _process(self, recipe: Recipe, work: Path) -> processes.Process:
        shutil.rmtree(work)
        # The engine takes the list of tests of what it has built from the unpacked package of that
        # name, version and build, should one be there, which may be another's.
        for output in recipe.outputs:
            stem = f"{output.name}-{output.version}-{output.build}"
            shutil.rmtree(paths.engine_cache() / "pkgs" / stem, ignore_errors=True)
        needed = [
            package
            for name in sorted(self.plan.closure(recipe.name))
            for package in self.packages[name]
        ]
        # A channel with exactly the recipe's dependencies: nothing else can be resolved.
        channel.place(needed, work / "channel")
        request = engine.Request(
            recipe=str(recipe.path),
            variant=self.plan.variant,
            channel=str(work / "channel"),
            output=str(work / "output"),
            result=str(work / "result.json"),
            engine=self.engine_name,
        )
        engine.write(request, work / "request.json")
        return processes.start(
            [sys.executable, "-m", "builder.package.engine", work / "request.json"],
            env=engine.environment(paths.engine_cache()),
            log=self._log(recipe),
            cwd=paths.ROOT,
        )

    def _log(self, recipe: Recipe) -> Path:
        return paths.LOGS / f"{recipe.name}.log"

    def _collect(self, table: progress.Progress) -> None:
        for name, build in list(self.running.items()):
            if build.process.poll() is None:
                continue
            del self.running[name]
            try:
                if build.process.returncode != 0:
                    raise self._failure(build)
                result = json.loads((build.work / "result.json").read_text(encoding="utf-8"))
                self.packages[name] = store(build.work / "output", self.plan.keys[name])
                shutil.rmtree(build.work)
            finally:
                os.close(build.lock)
            took = result["cpu_seconds"]
            table.finished(name, took)
            begin, end = (moment - self.began for moment in (build.began, time.monotonic()))
            self.spans.append(Span(name, round(begin, 1), round(end, 1), took))
            known = ("cpu_seconds", "wall_seconds")
            place = build.recipe.path.name
            forecast.remember(
                "recipes", place, {key: result[key] for key in known if key in result}
            )

    def _failure(self, build: _Running) -> BuildFailed | DiskFull:
        log = self._log(build.recipe)
        text = log.read_text(encoding="utf-8", errors="replace")
        reason = complaints.reason(text) or f"exit status {build.process.returncode}"
        if (
            shutil.disk_usage(build.work).free < 1 << 24
            or "No space left on device" in text[-10_000:]
        ):
            return DiskFull(
                f"recipe {build.recipe.name}: no room left below {build.work}",
                "free some space, or set THEANO_FAST_CACHE to a larger file system; "
                "the next build goes on from here",
            )
        shown = "\n".join(f"  | {line}" for line in complaints.matter(text))
        return BuildFailed(
            f"recipe {build.recipe.name} failed: {reason}\n{shown}",
            f"the whole log: {progress.place(log)}\n"
            f"  -> its work directory, until the next build: {build.work}\n"
            "  -> mend the cause and run again, which goes on from here; --verbose shows the logs",
        )
