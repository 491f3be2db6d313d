"""The stages in order, stopping at the first failure."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import (
    aocl,
    builds,
    bundles,
    channel,
    engine,
    envs,
    paths,
    progress,
    rebuilds,
    recipes,
    report,
    run,
    sbom,
    sources,
    stacks,
    toolchain,
)
from builder import packages as store
from builder.channel import Package
from builder.envs import Environment, Lock
from builder.errors import (
    EnvironmentFailed,
    HostToolMissing,
    NotReproducible,
    UsageError,
    VerifyFailed,
)
from builder.packages import Plan
from builder.recipes import METAPACKAGE, Recipe
from builder.stacks import Stack
from builder.toolchain import Toolchain


@dataclass(frozen=True)
class Options:
    """How to build; the defaults suit a machine with a network."""

    sources: Path | None = None
    offline: bool = False
    engine: str = engine.ENGINES[0]
    jobs: int = 0
    bundle: Path | None = None
    amdlibm_archive: Path | None = None
    locked: bool = False

    def __post_init__(self) -> None:
        if self.engine not in engine.ENGINES:
            raise UsageError(
                f"unknown engine {self.engine!r}", f"choose one of: {', '.join(engine.ENGINES)}"
            )
        if self.engine == "conda-build" and shutil.which("conda-build") is None:
            raise HostToolMissing(
                "--engine=conda-build: conda-build is not on PATH",
                "install conda-build 26.5 or newer, or leave --engine out",
            )
        if self.sources and not self.sources.is_dir():
            raise UsageError(f"--sources: {self.sources} is not a directory")
        if self.bundle and not self.bundle.is_file():
            raise UsageError(f"--bundle: there is no file {self.bundle}")
        if self.amdlibm_archive and not self.amdlibm_archive.is_file():
            raise UsageError(f"--amdlibm-archive: there is no file {self.amdlibm_archive}")


@dataclass(frozen=True)
class Planned:
    """A stack, and what it takes to build it on this host."""

    stack: Stack
    toolchain: Toolchain
    plan: Plan


def load(name: str, options: Options) -> Stack:
    """The stack called ``name``, with AMD's own library where ``options`` bring it."""
    stack = stacks.load(name)
    if options.amdlibm_archive:
        return stacks.with_amdlibm(stack, aocl.keep(options.amdlibm_archive))
    return stack


def plan(name: str, options: Options) -> Planned:
    """Render a stack's recipes for this host and compute their input keys."""
    stack = load(name, options)
    tools = toolchain.probe()
    rendered = recipes.load_all(stack, tools)
    needs = recipes.closure(rendered)
    variant = recipes.variant(stack, tools)
    return Planned(stack, tools, store.plan(rendered, needs, variant, tools, options.engine))


def fetch(
    name: str, options: Options, to: Path | None = None, bundle: Path | None = None
) -> list[Path]:
    """All sources of a stack, verified, in the cache.

    Args:
        to: a directory to copy them into.
        bundle: an archive to write, of them and all else that a build takes.
    """
    files = fetch_sources(plan(name, options).plan.recipes, options)
    if to:
        sources.collect(files, to)
        progress.say(f"{name}: {len(files)} sources in {to}")
    if bundle:
        bundles.write(bundle, files)
        size = bundle.stat().st_size / 1e6
        progress.say(f"{bundle}: {size:.0f} MB, SHA-256 {sources.sha256(bundle)}")
    return files


def fetch_sources(wanted: Iterable[Recipe], options: Options) -> list[Path]:
    """The sources of recipes, verified, in the cache."""
    files = {source for recipe in wanted for source in recipe.sources}
    if options.bundle and files:
        with bundles.unpacked(options.bundle) as directory:
            return sources.fetch(files, directory=directory, offline=True)
    return sources.fetch(files, directory=options.sources, offline=options.offline)


def packages(name: str, options: Options) -> tuple[Planned, list[Package]]:
    """All packages of a stack, built where their inputs changed, in ``build/channel``."""
    planned = plan(name, options)
    if store.missing(planned.plan):
        toolchain.require_known(planned.toolchain)
    built = build_packages(planned.plan, options)
    channel.place(built, paths.CHANNEL)
    return planned, built


def build_packages(plan: Plan, options: Options) -> list[Package]:
    """All packages of a plan, built where their inputs changed."""
    fetch_sources(store.missing(plan), options)
    jobs = options.jobs or run.cpus()
    built = builds.build(plan, jobs=jobs, engine_name=options.engine)
    return [package for row in built.values() for package in row]


def rebuild(name: str, options: Options, package: str = "", turn: int = 0) -> None:
    """Build a stack's packages, or the one of them, a second time, and compare the bytes.

    Args:
        turn: if not 0, leave out all that take minutes but one, the ``turn``-th by turns; that
            too if one of them was just built for the first time.

    Raises:
        UsageError: no recipe of the stack makes ``package``.
        NotReproducible: a package differs.
    """
    missing = store.missing(plan(name, options).plan)
    planned, _ = packages(name, options)
    chosen = rebuilds.choose(planned.plan.recipes, package)
    if turn:
        chosen = rebuilds.take_turns(chosen, turn, missing)
    progress.say(f"a second time: {', '.join(recipe.name for recipe in chosen)}")
    fetch_sources(chosen, options)
    reports = paths.REPORTS / f"{planned.stack.name}-rebuild"
    found = rebuilds.rebuild(planned.plan, name, chosen, reports, options.amdlibm_archive)
    report.write(report.rebuild_document(found), reports.with_suffix(".json"))
    for item in found:
        progress.say(f"{'same   ' if item.identical else 'DIFFERS'}  {item.second}  {item.package}")
    if differing := [item for item in found if not item.identical]:
        lines = [f"{item.package}: {', '.join(item.differences)}" for item in differing]
        raise NotReproducible(
            "two builds differ\n  " + "\n  ".join(lines),
            f"with diffoscope on PATH, what differs in these files is told in {reports}",
        )


def resolve(planned: Planned, built: list[Package]) -> Lock:
    """The stack resolved to exact packages among those that were built."""
    metapackage = next(item for item in planned.plan.recipes if item.name == METAPACKAGE)
    return envs.resolve(planned.stack, metapackage, built)


def lock(name: str, options: Options, write: bool = False) -> tuple[Planned, Lock]:
    """The stack resolved to exact packages; how they differ from those in ``envs/<stack>`` is told.

    What holds a file of the user's is not for the repository: its lock is in ``build/locks``.

    Args:
        write: write them to ``envs/<stack>``.

    Raises:
        NotReproducible: with ``options.locked``, they are other packages.
    """
    planned, built = packages(name, options)
    resolved = resolve(planned, built)
    own = bool(planned.stack.amdlibm_archive)
    place = (paths.OWN_LOCKS if own else paths.LOCKS) / planned.stack.name
    if options.locked:
        envs.check(resolved, place)
    elif write or own:
        envs.write(resolved, place)
    elif differing := envs.compare(resolved, place):
        flags = stacks.flags(resolved.stack)
        progress.say(f"{differing}\n  -> it stays as it is; ./invoke lock {flags} writes it anew")
    return planned, resolved


def create(name: str, options: Options) -> tuple[Planned, Environment]:
    """The stack's environment, installed."""
    planned, resolved = lock(name, options)
    return planned, envs.create(resolved)


def verify(name: str, arguments: Iterable[str] = ()) -> dict[str, Any]:
    """Run ``theano-fast verify`` inside an environment, on the caller's terminal.

    Returns:
        Its JSON.

    Raises:
        EnvironmentFailed: the environment was not built.
        VerifyFailed: a check failed.
    """
    command = paths.ENVIRONMENTS / name / "bin" / "theano-fast"
    if envs.installed(name) is None or not command.exists():
        stack = stacks.load(name)
        raise EnvironmentFailed(
            f"{command.parent.parent} is not built", f"./invoke build --stack={stack.name}"
        )
    file = report.verification(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    status = run.show([command, "verify", "--json", file, *arguments], env=run.clean_environ())
    if status != 0:
        raise VerifyFailed(
            f"stack {name} does not prove itself (exit status {status})",
            f"the failed checks are above and in {file}",
        )
    return report.read(file)


def build(name: str, options: Options) -> Environment:
    """The whole of it: fetch, packages, channel, lock, environment, verify, report.

    A stack that verified before, in the same bytes and on the same toolchain, is not
    verified again; ``verify`` does it at any time.
    """
    planned, environment = create(name, options)
    stack = planned.stack
    file = report.file(stack.name)
    document = report.document(stack, planned.toolchain, planned.plan, environment.lock)
    before = report.read(file)
    verified = before.pop("verify", None)
    if before != document or not verified:
        document["verify"] = verify(stack.name)
        report.write(document, file)
    progress.say(f"{stack.name}: verified; {environment.prefix}; report: {file}")
    return environment


def bill(name: str, options: Options) -> Path:
    """Write a stack's software bill of materials, and print the digests that one would sign.

    Raises:
        EnvironmentFailed: the stack's packages were not built.
    """
    planned = plan(name, options)
    if missing := store.missing(planned.plan):
        raise EnvironmentFailed(
            f"{name}: not built: {', '.join(recipe.name for recipe in missing)}",
            f"./invoke build {stacks.flags(planned.stack.name)}",
        )
    _, resolved = lock(name, options)
    name = planned.stack.name
    file = paths.REPORTS / f"{name}.cdx.json"
    report.write_text(sbom.document(planned.plan, resolved), file)
    rows = [["lock", resolved.digest], ["bill of materials", sources.sha256(file)]]
    if envs.installed(name) == resolved.digest:
        rows.append(["environment", envs.tree(paths.ENVIRONMENTS / name)])
    if image_id := report.read(report.image_file(name)).get("id"):
        rows.append(["image", str(image_id).removeprefix("sha256:")])
    for what, digest in rows:
        progress.say(f"{digest}  {what}")
    progress.say(f"{name}: its bill of materials: {file}")
    return file


def overview() -> None:
    """Print the stacks, and which of them are built and verified."""
    rows = []
    for stack in stacks.load_all():
        digest = envs.installed(stack.name)
        known = report.read(report.file(stack.name))
        verified = digest is not None and known.get("lock") == digest and "verify" in known
        state = "verified" if verified else "built" if digest else "-"
        rows.append([stack.name, *stack.axes.values(), state])
    progress.table(["stack", *stacks.AXES, "state"], rows)


def clean(cache: bool) -> None:
    """Remove ``build/``, and with ``cache`` the per-user cache."""
    for directory in (paths.BUILD, *([paths.cache()] if cache else [])):
        if directory.exists():
            shutil.rmtree(directory)
            progress.say(f"removed {directory}")
