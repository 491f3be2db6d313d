"""The stages in order, stopping at the first failure."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from builder import report
from builder.common import paths, processes, progress
from builder.common.errors import (
    EnvironmentFailed,
    HostToolMissing,
    NotReproducible,
    UsageError,
    VerifyFailed,
)
from builder.environment import envs, packs, sbom
from builder.environment.envs import Environment, Lock
from builder.package import builds, bundles, channel, engine, published, rebuilds, steps
from builder.package import packages as store
from builder.package.channel import Package
from builder.package.packages import Plan
from builder.package.steps import Step, Steps
from builder.source import aocl, sources
from builder.stack import recipes, stacks, toolchain
from builder.stack.recipes import METAPACKAGE, Recipe
from builder.stack.stacks import Stack
from builder.timing import forecast, timings
from builder.timing.timings import Span


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
    timings: bool = False

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

    def pip_flags(self) -> list[str]:
        """pip's, for what is pinned by hash, out of where sources come from."""
        flags = ["--disable-pip-version-check", "--require-hashes"]
        flags += [f"--find-links={self.sources}"] if self.sources else []
        return flags + (["--no-index"] if self.offline else [])


@dataclass(frozen=True)
class Planned:
    """A stack, and what it takes to build it on this host."""

    stack: Stack
    plan: Plan
    steps: Steps = field(default_factory=Steps)


def load(name: str, options: Options) -> Stack:
    """The stack called ``name``, with AMD's own library where ``options`` bring it."""
    stack = stacks.load(name)
    if options.amdlibm_archive:
        # Whether the stack may have one, before anything is said of the archive.
        stacks.with_amdlibm(stack, "")
        return stacks.with_amdlibm(stack, aocl.keep(options.amdlibm_archive))
    return stack


def plan(name: str, options: Options) -> Planned:
    """Render a stack's recipes and compute their input keys."""
    stack = load(name, options)
    rendered = recipes.load_all(stack)
    needs = recipes.closure(rendered, METAPACKAGE, *stack.programs)
    variant = recipes.variant(stack)
    return Planned(stack, store.plan(rendered, needs, variant, options.engine))


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
    if not to and not bundle:
        progress.say(f"{name}: {len(files)} sources in {progress.place(paths.source_cache())}")
    return files


def fetch_sources(
    wanted: Iterable[Recipe], options: Options, known: Steps | None = None
) -> list[Path]:
    """The sources of recipes, verified, in the cache; as a step of those that are ``known``."""
    files = {source for recipe in wanted for source in recipe.sources}
    absent = forecast.absent(files)
    with (known or Steps()).step("fetch", live=bool(absent)) as step:
        step.line = partial(steps.arrived, absent)
        if options.bundle and files:
            with bundles.unpacked(options.bundle) as directory:
                fetched = sources.fetch(files, directory=directory, offline=True)
        else:
            fetched = sources.fetch(files, directory=options.sources, offline=options.offline)
        step.did = steps.fetched(absent)
    return fetched


def packages(
    name: str, options: Options, then: tuple[str, ...] = ()
) -> tuple[Planned, list[Package]]:
    """All packages of a stack, built where their inputs changed, in ``build/channel``.

    What it takes is told first.

    Args:
        then: the steps that follow.
    """
    return _packages(plan(name, options), options, then)


def _packages(
    planned: Planned, options: Options, then: tuple[str, ...] = ()
) -> tuple[Planned, list[Package]]:
    stack = planned.stack.name
    if store.missing(planned.plan):
        toolchain.require_host()
    planned = replace(
        planned,
        steps=steps.announce(
            stack,
            planned.plan,
            then,
            jobs=_jobs(options),
            origin=_origin(options),
        ),
    )
    spans: list[Span] = []
    built = build_packages(planned.plan, options, planned.steps, spans)
    channel.place(built, paths.CHANNEL)
    _time(stack, planned.plan, options, spans)
    return planned, built


def _origin(options: Options) -> str:
    """Where sources come from, if nothing or not all is downloaded."""
    if options.bundle:
        return f"from {progress.place(options.bundle)}"
    if options.sources:
        where = progress.place(options.sources)
        return f"from {where}" if options.offline else f"first looked for in {where}"
    return "and --offline forbids a download" if options.offline else ""


def _jobs(options: Options) -> int:
    # One more than CPUs: configuring, linking and packing keep one busy, and often none.
    return options.jobs or processes.cpus() + 1


def build_packages(
    plan: Plan, options: Options, known: Steps | None = None, spans: list[Span] | None = None
) -> list[Package]:
    """All packages of a plan, built where their inputs changed.

    Args:
        known: the steps that these are among.
        spans: what was built when is added to it.
    """
    missing = store.missing(plan)
    fetch_sources(missing, options, known)
    with (known or Steps()).step("packages", live=bool(missing)) as step:
        built = builds.build(
            plan, jobs=_jobs(options), engine_name=options.engine, step=step, spans=spans
        )
        if missing:
            step.did = f"{len(missing)} built"
    return [package for row in built.values() for package in row]


def _time(stack: str, plan: Plan, options: Options, spans: list[Span]) -> None:
    """Write down where the time went, if something was built; and draw it, if that is asked for."""
    file = report.timings(stack)
    if spans:
        known = report.timings_document(stack, spans, plan.needs, _jobs(options), processes.cpus())
        report.write(known, file)
    if options.timings:
        lines = timings.draw(report.read(file))
        head = [] if spans else ["of the last build:" if lines else "nothing was built here yet"]
        place = [f"as JSON: {progress.place(file)}"] if lines else []
        progress.say("\n".join([*head, *lines, *place]))


def rebuild(name: str, options: Options, package: str = "", turn: int = 0) -> None:
    """Build a stack's packages, or the one of them, a second time, and compare the bytes.

    Args:
        turn: if not 0, leave out all that take minutes but one, the ``turn``-th by turns; that
            too if one of them was just built for the first time.

    Raises:
        UsageError: no recipe of the stack makes ``package``.
        NotReproducible: a package differs.
    """
    planned = plan(name, options)
    missing = store.missing(planned.plan)
    planned, _ = _packages(planned, options)
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


def lock(
    name: str, options: Options, write: bool = False, then: tuple[str, ...] = ()
) -> tuple[Planned, Lock]:
    """The stack resolved to exact packages; how they differ from those in ``envs/<stack>`` is told.

    What holds a file of the user's, or one of many choices of programs, is not for the repository:
    its lock is in ``build/locks``.

    Args:
        write: write them to ``envs/<stack>``.
        then: the steps that follow.

    Raises:
        NotReproducible: with ``options.locked``, they are other packages.
    """
    planned, built = packages(name, options, then)
    resolved = resolve(planned, built)
    place = _locks(planned.stack)
    own = place.parent == paths.OWN_LOCKS
    if options.locked:
        envs.check(resolved, place)
    elif write or own:
        envs.write(resolved, place)
    elif differing := envs.compare(resolved, place):
        flags = stacks.flags(resolved.stack)
        progress.say(f"{differing}\n  -> it stays as it is; ./invoke lock {flags} writes it anew")
    return planned, resolved


def _locks(stack: Stack) -> Path:
    own = stack.amdlibm_archive or stack.programs
    return (paths.OWN_LOCKS if own else paths.LOCKS) / stack.name


def create(name: str, options: Options, then: tuple[str, ...] = ()) -> tuple[Planned, Environment]:
    """The stack's environment, installed; ``then`` are the steps that follow."""
    planned, resolved = lock(name, options, then=("environment", *then))
    anew = envs.installed(resolved.stack) != resolved.digest
    with planned.steps.step("environment", live=anew) as step:
        environment = envs.create(resolved)
        if anew:
            step.did = f"{len(resolved.packages)} packages in {progress.place(environment.prefix)}"
    return planned, environment


def make_packages(name: str, options: Options) -> None:
    """All packages of a stack, and where they are.

    Raises:
        NotReproducible: with ``options.locked``, they are other packages.
    """
    planned, built = packages(name, options)
    if options.locked:
        envs.check(resolve(planned, built), _locks(planned.stack))
    where = progress.place(paths.CHANNEL)
    progress.conclude(f"{planned.stack.name}: {len(built)} packages in {where}")


def make_lock(name: str, options: Options) -> None:
    """The stack resolved anew, and where its lock is."""
    planned, resolved = lock(name, options, write=True)
    what = f"{planned.stack.name}: {len(resolved.packages)} packages"
    progress.conclude(f"{what} locked in {progress.place(_locks(planned.stack))}")


def make_environment(name: str, options: Options) -> None:
    """The stack's environment, installed, and where it is."""
    _, environment = create(name, options)
    progress.conclude(f"{environment.lock.stack}: {progress.place(environment.prefix)}")


def compilers() -> Path:
    """Where what packages are built by is installed, by plain names, once packages are built."""
    planned = plan("openblas", Options()).plan
    built = [each for key in planned.keys.values() for each in store.cached(key) or ()]
    prefix = paths.BUILD / "compilers"
    envs.assemble(built, ["gcc_linux-64", "gxx_linux-64", "patch"], prefix)
    return prefix / "bin"


def verify(name: str, arguments: Iterable[str] = (), log: Path | None = None) -> dict[str, Any]:
    """Run ``theano-fast verify`` inside an environment, on the caller's terminal.

    Args:
        log: where its output goes instead, and is shown from if a check fails.

    Returns:
        Its JSON.

    Raises:
        EnvironmentFailed: the environment was not built.
        VerifyFailed: a check failed.
    """
    name = stacks.canonical(name)
    command = paths.ENVIRONMENTS / name / "bin" / "theano-fast"
    if envs.installed(name) is None or not command.exists():
        stack = stacks.load(name)
        raise EnvironmentFailed(
            f"{command.parent.parent} is not built", f"./invoke build --stack={stack.name}"
        )
    file = report.verification(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    call: list[str | Path] = [command, "verify", "--json", file, *arguments]
    if log:
        status = processes.record(call, env=processes.clean_environ(), log=log)
    else:
        status = processes.show(call, env=processes.clean_environ())
    if status != 0:
        if log:
            progress.conclude(log.read_text("utf-8", "replace").rstrip())
        raise VerifyFailed(
            f"stack {name} does not prove itself (exit status {status})",
            f"the failed checks are above and in {progress.place(file)}",
        )
    return report.read(file)


def build(name: str, options: Options) -> Environment:
    """The whole of it: fetch, packages, channel, lock, environment, verify, report.

    A stack that verified before, in the same bytes, is not verified again; ``verify`` does it at
    any time.
    """
    planned, environment = create(name, options, ("verification", "report"))
    stack = planned.stack
    file = report.file(stack.name)
    document = report.document(stack, planned.plan, environment.lock)
    before = report.read(file)
    verified = before.pop("verify", None)
    prefix = progress.place(environment.prefix)
    if before == document and verified:
        progress.conclude(f"{stack.name}: verified before: {_counts(verified)}; {prefix}")
        return environment
    with planned.steps.step("verification", live=not progress.verbose()) as step:
        document["verify"] = _prove(stack.name, step)
        step.did = proved(document["verify"])
    with planned.steps.step("report") as step:
        report.write(document, file)
        step.did = progress.place(file)
    progress.conclude(f"{stack.name}: verified: {_counts(document['verify'])}; {prefix}")
    for command, what in (
        (f"{shlex.quote(prefix)}/bin/python train.py", "run a program"),
        (f"./invoke verify --stack={stack.name} --full", "a large training step too"),
        (f"./invoke image {stacks.flags(stack.name)}", "a Docker image"),
    ):
        progress.say(f"  {command:<44} # {what}")
    return environment


# A line of what ``theano-fast verify`` prints.
CHECK = re.compile(r"^(\w+) +(passed|failed|skipped) ", re.MULTILINE)


def _prove(name: str, step: Step) -> dict[str, Any]:
    """Verify an environment, as a step; what the checks say is shown if one fails, or if asked."""
    if progress.verbose():
        return verify(name)
    log = paths.LOGS / f"{name}-verify.log"

    def line() -> str:
        try:
            done = CHECK.findall(log.read_text("utf-8", "replace"))
        except OSError:
            return ""
        return f"{len(done)} check{'s' if len(done) > 1 else ''} done" if done else ""

    log.unlink(missing_ok=True)
    step.line = line
    return verify(name, log=log)


def _counts(known: Mapping[str, Any]) -> str:
    return re.sub(r" \(.*", "", proved(known))


def proved(known: Mapping[str, Any]) -> str:
    """What a verification proved, and what it left out, from its JSON."""
    names: dict[str, list[str]] = {}
    for check in known.get("checks", []):
        names.setdefault(check["status"], []).append(check["name"])
    words = [f"{len(names.get('passed', []))} checks passed"]
    if skipped := names.get("skipped"):
        words.append(f"{len(skipped)} skipped ({', '.join(skipped)})")
    return ", ".join(words)


def pack(name: str, options: Options, to: Path | None = None) -> Path:
    """A stack as an archive for machines without conda, proved elsewhere before it has its name.

    Args:
        to: the file, else one in ``build/packs``.

    Raises:
        UsageError: the stack has no Python 3, which tells an archive where it is.
    """
    image = f"take an image to the other machine: ./invoke image --stack={name}"
    stacks.of_today(name, "pack", image)
    planned, resolved = lock(name, options, then=("pack", "verification"))
    file = to or paths.PACKS / f"{packs.top(resolved.stack)}.tar.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as directory:
        part = Path(directory, file.name)
        with planned.steps.step("pack") as step:
            packs.write(resolved, toolchain.floor(), part)
            step.did = f"{part.stat().st_size / 1e6:.0f} MB"
        with planned.steps.step("verification"):
            packs.prove(part, resolved.stack)
        part.replace(file)
    progress.say(f"{sources.sha256(file)}  {progress.place(file)}")
    progress.conclude(
        f"{resolved.stack}: {progress.place(file)}; there, tar -xzf it, and run "
        f"{packs.top(resolved.stack)}/{packs.UNPACK}"
    )
    return file


def publish(names: Iterable[str], options: Options, to: Path, address: str = "") -> None:
    """The packages of stacks in a channel that can be served, and their locks with its address.

    Args:
        names: the stacks; none for all that are built.
        address: where clients will find the channel, if it is not ``to`` itself.

    Raises:
        EnvironmentFailed: no stack is built.
    """
    built = [stack.name for stack in stacks.load_all() if envs.installed(stack.name)]
    locks = [lock(name, options)[1] for name in (list(names) or built)]
    if not locks:
        raise EnvironmentFailed("no stack is built", "./invoke build --stack=openblas")
    published.write({package for each in locks for package in each.packages}, to)
    for each in locks:
        envs.write(each, to / "envs" / each.stack, address or to.as_uri())
    told = ", ".join(each.stack for each in locks)
    progress.say(f"{told}: packages and locks in {progress.place(to)}")


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
