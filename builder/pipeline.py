"""Build a stack in stages: sources, packages, channel, lock file, environment, checks, report."""

from __future__ import annotations

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

# The default steps of ``fetch_sources``, for callers that run no other step.
FETCH_ONLY = Steps(("fetch",))
# The steps of :meth:`Build.run` that follow the build of the packages.
BUILD_STEPS = ("environment", "verification", "report")


class Build:
    """The build of one stack. Each stage is a method, which first runs the earlier stages.

    Attributes:
        stack: the stack, with the programs of ``--with`` and the library of
            ``--amdlibm-archive``.
        plan: the recipes of the stack, with their dependencies and cache keys.
        options: the flags of the command.
        missing: the recipes whose packages were not in the package cache when the command started.
        steps: the steps of the command, which print its progress.
        jobs: the number of recipes to build at once.
    """

    def __init__(
        self, stack: Stack, plan: Plan, options: Options, later: tuple[str, ...] = ()
    ) -> None:
        self.stack = stack
        self.plan = plan
        self.options = options
        self.missing = package_cache.find_missing(plan)
        self.steps = steps.list_steps(self.missing, later)
        # One job more than CPUs: configure scripts, linking and packing use at most one CPU.
        self.jobs = options.jobs or processes.count_cpus() + 1

    @classmethod
    def create(cls, name: str, options: Options, later: tuple[str, ...] = ()) -> Build:
        """Create the build of a stack: render its recipes and compute their cache keys.

        Args:
            name: the stack, with its programs: ``mkl+keras``.
            later: the names of the steps that follow the build of the packages.

        Raises:
            UsageError: the stack, a program or the engine is unknown.
            HostToolMissing: the engine is conda-build, which is not on PATH.
        """
        _require_engine(options.engine)
        stack = load_stack(name, options)
        rendered = recipes.load_all(stack)
        needs = recipes.collect_dependencies(rendered, METAPACKAGE, *stack.programs)
        plan = package_cache.make_plan(rendered, needs, recipes.make_variant(stack), options.engine)
        return cls(stack, plan, options, later)

    def build_packages(self) -> list[Package]:
        """Build the missing packages, and add all packages of the stack to the channel.

        First print the expected time, downloads and disk space.

        Returns:
            All packages of the stack.

        Raises:
            HostToolMissing: a package is missing, and the host has no glibc or an old glibc.
        """
        if self.missing:
            toolchain.require_host_glibc()
        origin = _describe_origin(self.options)
        steps.announce(self.stack.name, self.plan, self.steps, jobs=self.jobs, origin=origin)
        stack_packages, spans = self.build_recipes()
        channel.add_packages(stack_packages, paths.CHANNEL)
        self._report_timings(spans)
        return stack_packages

    def build_recipes(self) -> tuple[list[Package], list[Span]]:
        """Fetch the sources of the recipes in ``missing``, and build these recipes.

        Returns:
            The packages of all recipes, cached and new, and the time spans of the builds.
        """
        if not self.missing:
            return self._build()
        fetch_sources(self.missing, self.options, self.steps)
        with self.steps.run_step("packages") as step:
            result = self._build(step)
            step.result = f"{len(self.missing)} built"
        return result

    def _build(self, step: steps.Step | None = None) -> tuple[list[Package], list[Span]]:
        """Build the recipes without a cache entry; return all packages, and the time spans."""
        built = builds.build_missing(
            self.plan, jobs=self.jobs, engine_name=self.options.engine, step=step
        )
        return [package for row in built.packages.values() for package in row], built.spans

    def _report_timings(self, spans: list[Span]) -> None:
        """Write the time spans of the builds to a report; with ``--timings``, print its chart.

        If nothing was built, keep the report of the last build and print the chart of that report.
        """
        file = report.get_timings_file(self.stack.name)
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
        """Select the packages of the stack's environment from ``stack_packages``.

        Raises:
            SolveFailed: the packages cannot be installed on this host.
        """
        metapackage = next(recipe for recipe in self.plan.recipes if recipe.name == METAPACKAGE)
        return envs.resolve_lock(self.stack, metapackage, stack_packages)

    @property
    def lock_directory(self) -> Path:
        """The directory of the stack's lock file: ``envs/<stack>`` or ``build/locks/<stack>``.

        The repository contains no lock files of stacks with programs or with AMD's library. They
        are in ``build/locks``.
        """
        local = self.stack.amdlibm_archive or self.stack.programs
        return (paths.OWN_LOCKS if local else paths.LOCKS) / self.stack.name

    def lock(self, *, write: bool = False) -> Lock:
        """Build the packages and resolve the stack to exact packages.

        With ``--locked``, compare the packages with the stack's lock file. Otherwise write a lock
        file in ``build/locks``; print the differences from a lock file in ``envs/``.

        Args:
            write: instead of printing the differences, write the lock file in ``envs/``.

        Raises:
            NotReproducible: with ``--locked``, the packages differ from the lock file.
        """
        lock = self.resolve(self.build_packages())
        if self.options.locked:
            envs.check_lock(lock, self.lock_directory)
        elif write or self.lock_directory.parent == paths.OWN_LOCKS:
            envs.write_lock(lock, self.lock_directory)
        elif differences := envs.describe_differences(lock, self.lock_directory):
            command = f"./invoke lock {stacks.format_flags(lock.stack)}"
            progress.say(
                f"{differences}\n  -> the lock file was not changed; to write it: {command}"
            )
        return lock

    def install(self) -> Environment:
        """Resolve the stack and install its environment, unless its packages are installed."""
        lock = self.lock()
        if envs.read_installed_digest(lock.stack) == lock.digest:
            return envs.create_environment(lock)
        with self.steps.run_step("environment") as step:
            environment = envs.create_environment(lock)
            prefix = progress.display_path(environment.prefix)
            step.result = f"{len(lock.packages)} packages in {prefix}"
        return environment

    def run(self) -> Environment:
        """Install the environment, verify it, and write the report.

        Skip verification if the previous report has the same sources and packages, and contains a
        verification.
        """
        environment = self.install()
        file = report.get_stack_file(self.stack.name)
        document = report.describe_stack(self.stack, self.plan, environment.lock)
        previous = report.read(file)
        previous_verification = previous.pop("verify", None)
        if previous == document and previous_verification:
            self._conclude("verified before", previous_verification, environment)
            return environment
        with self.steps.run_step("verification", live=not progress.is_verbose()) as step:
            document["verify"] = verification.verify_in_step(self.stack.name, step)
            step.result = verification.summarize_checks(document["verify"])
        with self.steps.run_step("report") as step:
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
        counts = verification.format_check_counts(checks)
        prefix = progress.display_path(environment.prefix)
        progress.conclude(f"{self.stack.name}: {state}: {counts}; {prefix}")


def load_stack(name: str, options: Options) -> Stack:
    """Load a stack; with ``--amdlibm-archive``, replace its amdlibm by AMD's release.

    Raises:
        UsageError: the stack is unknown, or its amdlibm cannot be replaced.
    """
    stack = stacks.load(name)
    if options.amdlibm_archive:
        # Raise UsageError before the archive is read, if the stack has no amdlibm to replace.
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
    """Describe the origin of the sources; return "" if the builder downloads all sources."""
    if options.bundle:
        return f"from {progress.display_path(options.bundle)}"
    if options.sources:
        directory = progress.display_path(options.sources)
        return f"from {directory}" if options.offline else f"searched in {directory} first"
    return "and --offline forbids a download" if options.offline else ""


def fetch_sources(
    needed_recipes: Iterable[Recipe], options: Options, command_steps: Steps = FETCH_ONLY
) -> list[Path]:
    """Fetch the sources of recipes into the source cache, and verify their SHA-256.

    Args:
        command_steps: the steps of the command. They must include "fetch" if a source is not
            cached.

    Returns:
        The sources in the source cache.
    """
    files = {source for recipe in needed_recipes for source in recipe.sources}
    absent = forecast.find_absent_sources(files)

    def fetch() -> list[Path]:
        if options.bundle and files:
            with bundles.unpack_sources(options.bundle) as directory:
                return sources.fetch(files, directory=directory, offline=True)
        return sources.fetch(files, directory=options.sources, offline=options.offline)

    if not absent:
        return fetch()
    with command_steps.run_step("fetch") as step:
        step.describe = partial(steps.describe_arrived, absent)
        fetched = fetch()
        step.result = steps.describe_fetched(absent)
    return fetched


def fetch_stack(
    name: str, options: Options, directory: Path | None = None, bundle: Path | None = None
) -> list[Path]:
    """Fetch all sources of a stack.

    Args:
        directory: the directory to which the sources are copied; None to copy nothing.
        bundle: the archive to write, with the sources, this repository and the builder's tools;
            None to write no archive.

    Returns:
        The sources in the source cache.
    """
    files = fetch_sources(Build.create(name, options).plan.recipes, options)
    if directory:
        sources.copy_to(directory, files)
        progress.say(f"{name}: {len(files)} sources in {directory}")
    if bundle:
        bundles.write_bundle(bundle, files)
        size = bundle.stat().st_size / 1e6
        progress.say(f"{bundle}: {size:.0f} MB, SHA-256 {sources.hash_file(bundle)}")
    if not directory and not bundle:
        cache = progress.display_path(paths.get_source_cache())
        progress.say(f"{name}: {len(files)} sources in {cache}")
    return files


def build_packages(name: str, options: Options) -> None:
    """Build all packages of a stack and print their directory.

    Raises:
        NotReproducible: with ``--locked``, the packages differ from the lock file.
    """
    build = Build.create(name, options)
    stack_packages = build.build_packages()
    if options.locked:
        envs.check_lock(build.resolve(stack_packages), build.lock_directory)
    directory = progress.display_path(paths.CHANNEL)
    progress.conclude(f"{build.stack.name}: {len(stack_packages)} packages in {directory}")


def write_lock(name: str, options: Options) -> None:
    """Resolve a stack, write its lock file, and print the lock file's directory."""
    build = Build.create(name, options)
    lock = build.lock(write=True)
    directory = progress.display_path(build.lock_directory)
    progress.conclude(f"{lock.stack}: {len(lock.packages)} packages locked in {directory}")


def install_environment(name: str, options: Options) -> None:
    """Install a stack's environment and print its prefix."""
    environment = Build.create(name, options, ("environment",)).install()
    prefix = progress.display_path(environment.prefix)
    progress.conclude(f"{environment.lock.stack}: {prefix}")


def build_stack(name: str, options: Options) -> Environment:
    """Build, install and verify a stack, and write its report."""
    return Build.create(name, options, BUILD_STEPS).run()
