"""Build a stack's recipes, each only when its inputs changed, several at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from builder import channel, engine, paths, progress, run
from builder.channel import Package
from builder.errors import BuildFailed, DiskFull
from builder.packages import Plan, cached, store
from builder.recipes import Recipe


def build(
    plan: Plan, *, jobs: int = 2, engine_name: str = engine.ENGINES[0]
) -> dict[str, list[Package]]:
    """Build what is not in the package cache; packages by recipe.

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
        _Builds(plan, packages, engine_name).run(pending, jobs)
    return packages


@dataclass
class _Running:
    """A recipe's build under way."""

    recipe: Recipe
    process: subprocess.Popen[bytes]
    lock: int
    work: Path


class _Builds:
    """Builds of one plan: starts what is ready, collects what has ended."""

    def __init__(self, plan: Plan, packages: dict[str, list[Package]], engine_name: str) -> None:
        self.plan = plan
        self.packages = packages
        self.engine_name = engine_name
        self.running: dict[str, _Running] = {}
        self.waiting: set[str] = set()

    def run(self, pending: list[Recipe], jobs: int) -> None:
        """Build ``pending``, at most ``jobs`` at once; on a failure stop the others."""
        clock = engine.clock(paths.cache())
        table = progress.Progress(len(pending))
        pending = sorted(pending, key=lambda recipe: -self._weight(recipe.name))
        try:
            with progress.shown(table):
                while pending or self.running:
                    for recipe in list(pending):
                        if len(self.running) >= jobs:
                            break
                        if self.plan.needs[recipe.name] <= set(self.packages):
                            self._start(recipe, clock, table, pending)
                    self._collect(table)
                    time.sleep(0.1)
        finally:
            for build in self.running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(build.process.pid, signal.SIGKILL)
                build.process.wait()
                os.close(build.lock)

    def _weight(self, name: str) -> int:
        """How many recipes wait for this one: those on the long chain start first."""
        return sum(name in self.plan.closure(recipe.name) for recipe in self.plan.recipes)

    def _start(
        self, recipe: Recipe, clock: Path, table: progress.Progress, pending: list[Recipe]
    ) -> None:
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
        process = self._process(recipe, work, clock)
        self.running[recipe.name] = _Running(recipe, process, lock, work)
        table.started(recipe.name, self._log(recipe))

    def _process(self, recipe: Recipe, work: Path, clock: Path) -> subprocess.Popen[bytes]:
        shutil.rmtree(work)
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
        return run.start(
            [sys.executable, "-m", "builder.engine", work / "request.json"],
            env=engine.environment(clock, paths.engine_cache()),
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
            table.finished(name, result["cpu_seconds"])

    def _failure(self, build: _Running) -> BuildFailed | DiskFull:
        log = self._log(build.recipe)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        reason = lines[-1] if lines else f"exit status {build.process.returncode}"
        if shutil.disk_usage(build.work).free < 1 << 24 or "No space left on device" in "".join(
            lines[-50:]
        ):
            return DiskFull(
                f"recipe {build.recipe.name}: no room left below {build.work}",
                "free some space, or set THEANO_FAST_CACHE to a larger file system; "
                "the next build goes on from here",
            )
        tail = "\n".join(f"  | {line}" for line in lines[-25:])
        return BuildFailed(
            f"recipe {build.recipe.name} failed: {reason}\n{tail}", f"the whole log: {log}"
        )
