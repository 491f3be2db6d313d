"""Build a stack in stages: sources, packages, channel, lock, environment, checks, report."""

from __future__ import annotations

import enum
import shlex
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from builder import report, verification
from builder.common import paths, processes, progress
from builder.common.errors import HostToolMissing, UsageError
from builder.environment import envs
from builder.environment.envs import Environment, Lock
from builder.options import Options
from builder.package import builds, bundles, channel, engine, package_cache, steps
from builder.package.channel import Package
from builder.package.package_cache import Plan
from builder.package.steps import Steps
from builder.source import aocl, sources
from builder.stack import recipes, stacks, toolchain
from builder.stack.recipes import METAPACKAGE, Recipe
from builder.stack.stacks import Stack
from builder.timing import forecast, timings
from builder.timing.timings import Span

# The step of a command that fetches sources outside of a build.
FETCH_ONLY = Steps(("fetch",))


class Target(enum.Enum):
    """The result of a command; the value names the steps after the packages.

    The values are strings, not tuples, because Enum before Python 3.11.4 replaces an empty tuple by
    an object.
    """

    PACKAGES = ""
    ENVIRONMENT = "environment"
    VERIFIED_ENVIRONMENT = "environment verification report"
    PACK = "pack verification"
    IMAGE = "image"


class Build:
    """The build of one stack; each stage first runs the stages that it needs.

    Attributes:
        stack: the stack, with its programs and AMD's library.
        plan: the recipes of the stack, with the cache keys of their inputs.
        options: the flags of the command.
        missing: the recipes without packages in the package cache when the command started.
        steps: the progress of the command.
    """

    def __init__(
        self, stack: Stack, plan: Plan, options: Options, target: Target = Target.PACKAGES
    ) -> None:
        self.stack = stack
        self.plan = plan
        self.options = options
        self.missing = package_cache.find_missing(plan)
        self.steps = steps.list_steps(self.missing, target.value.split())
        # One more than the CPUs: configure scripts, linking and packing use one CPU or less.
        self.jobs = options.jobs or processes.count_cpus() + 1

    @classmethod
    def of_stack(cls, name: str, options: Options, target: Target = Target.PACKAGES) -> Build:
        """Render a stack's recipes and compute their cache keys.

        Raises:
            UsageError: the stack, a program or the engine is unknown.
            HostToolMissing: the engine is conda-build, which is not on PATH.
        """
        _require_engine(options.engine)
        stack = load_stack(name, options)
        rendered = recipes.load_all(stack)
        needs = recipes.collect_dependencies(rendered, METAPACKAGE, *stack.programs)
        plan = package_cache.make_plan(rendered, needs, recipes.make_variant(stack), options.engine)
        return cls(stack, plan, options, target)

    def build_packages(self) -> list[Package]:
        """Announce the build, build missing packages, and index all in the channel."""
        if self.missing:
            toolchain.require_host_glibc()
        origin = _describe_origin(self.options)
        steps.announce(self.stack.name, self.plan, self.steps, jobs=self.jobs, origin=origin)
        stack_packages, spans = self.build_missing()
        channel.add_packages(stack_packages, paths.CHANNEL)
        self._report_timings(spans)
        return stack_packages

    def build_missing(self) -> tuple[list[Package], list[Span]]:
        """Fetch the sources of missing recipes and build them.

        Returns:
            The packages of all recipes, and the time spans of the builds.
        """
        if not self.missing:
            return self._build()
        fetch_sources(self.missing, self.options, self.steps)
        with self.steps.step("packages") as step:
            result = self._build(step)
            step.result = f"{len(self.missing)} built"
        return result

    def _build(self, step: steps.Step | None = None) -> tuple[list[Package], list[Span]]:
        built = builds.build_missing(
            self.plan, jobs=self.jobs, engine_name=self.options.engine, step=step
        )
        return [package for row in built.packages.values() for package in row], built.spans

    def _report_timings(self, spans: list[Span]) -> None:
        """Write the time spans if something was built; print their chart for ``--timings``."""
        file = report.timings_file(self.stack.name)
        if spans:
            cpus = processes.count_cpus()
            document = report.describe_timings(
                self.stack.name, spans, self.plan.needs, self.jobs, cpus
            )
            report.write(document, file)
        if not self.options.timings:
            return
        if chart := timings.draw(report.read(file)):
            lines = [] if spans else ["times of the last build:"]
            lines += [*chart, f"as JSON: {progress.display_path(file)}"]
        else:
            lines = ["no build times are recorded in this checkout"]
        progress.say("\n".join(lines))

    def resolve(self, stack_packages: Iterable[Package]) -> Lock:
        """Resolve the stack to exact packages of this build."""
        metapackage = next(recipe for recipe in self.plan.recipes if recipe.name == METAPACKAGE)
        return envs.resolve_lock(self.stack, metapackage, stack_packages)

    @property
    def lock_directory(self) -> Path:
        """The directory of the stack's lock: ``envs``, or ``build/locks``.

        The repository has no locks of stacks with AMD's library or with programs.
        """
        local = self.stack.amdlibm_archive or self.stack.programs
        return (paths.OWN_LOCKS if local else paths.LOCKS) / self.stack.name

    def lock(self, *, write: bool = False) -> Lock:
        """Build the packages and resolve the stack; report differences from its committed lock.

        Args:
            write: write the lock to ``lock_directory``, also if that is in the repository.

        Raises:
            NotReproducible: with ``--locked``, the packages differ from the lock's.
        """
        lock = self.resolve(self.build_packages())
        if self.options.locked:
            envs.check_lock(lock, self.lock_directory)
        elif write or self.lock_directory.parent == paths.OWN_LOCKS:
            envs.write_lock(lock, self.lock_directory)
        elif differences := envs.describe_differences(lock, self.lock_directory):
            command = f"./invoke lock {stacks.format_flags(lock.stack)}"
            progress.say(f"{differences}\n  -> the lock was not changed; to write it: {command}")
        return lock

    def install(self) -> Environment:
        """Lock the stack and install its environment, unless that lock is installed already."""
        lock = self.lock()
        if envs.read_installed_digest(lock.stack) == lock.digest:
            return envs.create_environment(lock)
        with self.steps.step("environment") as step:
            environment = envs.create_environment(lock)
            prefix = progress.display_path(environment.prefix)
            step.result = f"{len(lock.packages)} packages in {prefix}"
        return environment

    def run(self) -> Environment:
        """Install the environment, verify it, and write the report.

        Skip verification if an environment with the same bytes passed before.
        """
        environment = self.install()
        file = report.stack_file(self.stack.name)
        document = report.describe_stack(self.stack, self.plan, environment.lock)
        previous = report.read(file)
        previous_verification = previous.pop("verify", None)
        if previous == document and previous_verification:
            self._conclude("verified before", previous_verification, environment)
            return environment
        with self.steps.step("verification", live=not progress.is_verbose()) as step:
            document["verify"] = verification.verify_in_step(self.stack.name, step)
            step.result = verification.summarize(document["verify"])
        with self.steps.step("report") as step:
            report.write(document, file)
            step.result = progress.display_path(file)
        self._conclude("verified", document["verify"], environment)
        prefix = shlex.quote(progress.display_path(environment.prefix))
        for command, purpose in (
            (f"{prefix}/bin/python train.py", "run a program"),
            (
                f"./invoke verify --stack={self.stack.name} --full",
                "verify a large training step",
            ),
            (f"./invoke image {stacks.format_flags(self.stack.name)}", "build a Docker image"),
        ):
            progress.say(f"  {command:<44} # {purpose}")
        return environment

    def _conclude(
        self, state: str, checks: verification.Document, environment: Environment
    ) -> None:
        counts = verification.count_checks(checks)
        prefix = progress.display_path(environment.prefix)
        progress.conclude(f"{self.stack.name}: {state}: {counts}; {prefix}")


def load_stack(name: str, options: Options) -> Stack:
    """Load a stack, with AMD's own library if ``options`` have its archive."""
    stack = stacks.load(name)
    if options.amdlibm_archive:
        # Fails for a stack without amdlibm, before the archive is read.
        stacks.replace_amdlibm(stack, "")
        return stacks.replace_amdlibm(stack, aocl.cache_archive(options.amdlibm_archive))
    return stack


def _require_engine(name: str) -> None:
    if name not in engine.ENGINES:
        raise UsageError(f"unknown engine {name!r}", f"choose one of: {', '.join(engine.ENGINES)}")
    if name == "conda-build" and shutil.which("conda-build") is None:
        raise HostToolMissing(
            "--engine=conda-build: conda-build is not on PATH",
            "install conda-build 26.5 or newer, or omit --engine",
        )


def _describe_origin(options: Options) -> str:
    """Describe the origin of the sources, if not all of them are downloaded."""
    if options.bundle:
        return f"from {progress.display_path(options.bundle)}"
    if options.sources:
        directory = progress.display_path(options.sources)
        return f"from {directory}" if options.offline else f"searched in {directory} first"
    return "and --offline forbids a download" if options.offline else ""


def fetch_sources(
    needed: Iterable[Recipe], options: Options, command_steps: Steps = FETCH_ONLY
) -> list[Path]:
    """Put the sources of recipes into the source cache and verify them.

    Args:
        command_steps: the steps of the command; they include "fetch" if a source is not cached.
    """
    files = {source for recipe in needed for source in recipe.sources}
    absent = forecast.find_absent_sources(files)

    def fetch() -> list[Path]:
        if options.bundle and files:
            with bundles.unpack_sources(options.bundle) as directory:
                return sources.fetch(files, directory=directory, offline=True)
        return sources.fetch(files, directory=options.sources, offline=options.offline)

    if not absent:
        return fetch()
    with command_steps.step("fetch") as step:
        step.describe = partial(steps.describe_arrived, absent)
        fetched = fetch()
        step.result = steps.describe_fetched(absent)
    return fetched


def fetch_stack(
    name: str, options: Options, directory: Path | None = None, bundle: Path | None = None
) -> list[Path]:
    """Fetch all sources of a stack.

    Args:
        directory: copy the sources to it.
        bundle: write an archive with the sources, this repository and the builder's tools.

    Returns:
        The sources in the source cache.
    """
    files = fetch_sources(Build.of_stack(name, options).plan.recipes, options)
    if directory:
        sources.copy_to(directory, files)
        progress.say(f"{name}: {len(files)} sources in {directory}")
    if bundle:
        bundles.write_bundle(bundle, files)
        size = bundle.stat().st_size / 1e6
        progress.say(f"{bundle}: {size:.0f} MB, SHA-256 {sources.sha256(bundle)}")
    if not directory and not bundle:
        cache = progress.display_path(paths.source_cache())
        progress.say(f"{name}: {len(files)} sources in {cache}")
    return files


def build_packages(name: str, options: Options) -> None:
    """Build all packages of a stack and print their directory.

    Raises:
        NotReproducible: with ``--locked``, the packages differ from the lock's.
    """
    build = Build.of_stack(name, options)
    stack_packages = build.build_packages()
    if options.locked:
        envs.check_lock(build.resolve(stack_packages), build.lock_directory)
    directory = progress.display_path(paths.CHANNEL)
    progress.conclude(f"{build.stack.name}: {len(stack_packages)} packages in {directory}")


def write_lock(name: str, options: Options) -> None:
    """Resolve a stack, write its lock, and print the lock's directory."""
    build = Build.of_stack(name, options)
    lock = build.lock(write=True)
    directory = progress.display_path(build.lock_directory)
    progress.conclude(f"{lock.stack}: {len(lock.packages)} packages locked in {directory}")


def install_environment(name: str, options: Options) -> None:
    """Install a stack's environment and print its prefix."""
    environment = Build.of_stack(name, options, Target.ENVIRONMENT).install()
    prefix = progress.display_path(environment.prefix)
    progress.conclude(f"{environment.lock.stack}: {prefix}")


def build_stack(name: str, options: Options) -> Environment:
    """Build, install and verify a stack, and write its report."""
    return Build.of_stack(name, options, Target.VERIFIED_ENVIRONMENT).run()
