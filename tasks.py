"""The tasks: flags to one call each."""

from __future__ import annotations

import errno
import functools
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from invoke import __version__
from invoke.context import Context
from invoke.exceptions import Exit, ParseError
from invoke.program import Program
from invoke.tasks import task

from builder import audit as audits
from builder import bench as benches
from builder import checks, compilation, conformance, imaging, pipeline, references, speed
from builder.errors import DiskFull, NotWritable, TheanoFastError, UsageError

STACK = {"stack": "name of the stack; `invoke stacks` lists them"}
FETCH = {
    **STACK,
    "sources": "directory looked into for sources before anything is downloaded",
    "offline": "download nothing",
}
AMDLIBM = {
    "amdlibm_archive": "AMD's release archive of AOCL-LibM, in place of the open amdlibm",
}
BUILD = {
    **FETCH,
    "engine": "rattler-build, or conda-build (>= 26.3) if that is on PATH",
    "jobs": "recipes to build at once (default: the CPUs at hand)",
    "bundle": "archive that `invoke fetch --bundle` wrote: take all sources from it",
    **AMDLIBM,
    "locked": "fail if packages differ from those in envs/<stack>",
}
IMAGE = {
    **FETCH,
    **AMDLIBM,
    "base": "image to build on (default: what `invoke base-image` makes)",
}
INTERRUPTED = 130


def door(function: Callable[..., None]) -> Callable[..., None]:
    """Turn this project's errors into a message and their exit code."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        # What a task has begun, a container for one, it ends on SIGTERM too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            function(*args, **kwargs)
        except TheanoFastError as error:
            raise Exit(f"error: {error}", error.exit_code) from error
        except KeyboardInterrupt:
            raise Exit("interrupted; run again to go on from here", INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.ENOSPC:
                told: TheanoFastError = DiskFull(
                    f"no room left: {error}", "free some space and run again"
                )
            elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                told = NotWritable(
                    str(error),
                    "the checkout must be your own; THEANO_FAST_CACHE names another place than "
                    "~/.cache/theano-fast for what is fetched and built",
                )
            else:
                raise
            raise Exit(f"error: {told}", told.exit_code) from error

    return wrapper


def _options(
    sources: str,
    offline: bool,
    engine: str = "rattler-build",
    jobs: int = 0,
    bundle: str = "",
    amdlibm_archive: str = "",
    locked: bool = False,
) -> pipeline.Options:
    archive = _path(amdlibm_archive)
    return pipeline.Options(_path(sources), offline, engine, jobs, _path(bundle), archive, locked)


def _path(text: str) -> Path | None:
    return Path(text).expanduser().resolve() if text else None


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


@task(
    optional=["audit"],
    help={"audit": "how old the sources are, and which have newer releases; =NAME for one stack's"},
)
@door
def stacks(_: Context, audit: bool | str = False) -> None:
    """List the stacks, and which are built and verified."""
    if audit:
        audits.audit("" if audit is True else str(audit))
    else:
        pipeline.overview()


@task(
    help={
        **FETCH,
        "to": "copy them into this directory, to be carried elsewhere",
        "bundle": "write this archive: sources, this repository, the builder's tools",
    }
)
@door
def fetch(
    _: Context,
    stack: str,
    sources: str = "",
    offline: bool = False,
    to: str = "",
    bundle: str = "",
) -> None:
    """Fetch and verify a stack's sources."""
    pipeline.fetch(stack, _options(sources, offline), _path(to), _path(bundle))


def _stage(name: str, stage: Callable[[str, pipeline.Options], object], summary: str) -> Any:
    """The task that runs the pipeline up to and with one stage."""

    def run(
        _: Context,
        stack: str,
        sources: str = "",
        offline: bool = False,
        engine: str = "rattler-build",
        jobs: int = 0,
        bundle: str = "",
        amdlibm_archive: str = "",
        locked: bool = False,
    ) -> None:
        options = _options(sources, offline, engine, jobs, bundle, amdlibm_archive, locked)
        stage(stack, options)

    run.__doc__ = summary
    return task(name=name, help=BUILD)(door(run))


packages = _stage("packages", pipeline.packages, "Build a stack's packages into build/channel.")
lock = _stage(
    "lock",
    functools.partial(pipeline.lock, write=True),
    "Resolve a stack and write envs/<stack>.",
)
env = _stage("env", pipeline.create, "Install a stack's environment into build/envs/<stack>.")
build = _stage(
    "build", pipeline.build, "Build a stack: fetch, packages, lock, env, verify, report."
)


@task(
    help={
        **FETCH,
        **AMDLIBM,
        "package": "only this package, and those made by the same recipe",
        "turn": "of those that take minutes only one: a number, of the day for one, tells which",
    }
)
@door
def rebuild(
    _: Context,
    stack: str,
    sources: str = "",
    offline: bool = False,
    package: str = "",
    turn: int = 0,
    amdlibm_archive: str = "",
) -> None:
    """Build a stack's packages a second time, elsewhere and otherwise, and compare the bytes."""
    options = _options(sources, offline, amdlibm_archive=amdlibm_archive)
    pipeline.rebuild(stack, options, package, turn)


@task(help={**STACK, **AMDLIBM})
@door
def sbom(_: Context, stack: str, amdlibm_archive: str = "") -> None:
    """Write a built stack's software bill of materials (CycloneDX)."""
    pipeline.bill(stack, _options("", offline=True, amdlibm_archive=amdlibm_archive))


@task(help={**STACK, "full": "the training step in its full size"})
@door
def verify(_: Context, stack: str, full: bool = False) -> None:
    """Let a built environment prove itself."""
    pipeline.verify(stack, ["--full"] if full else [])


@task(
    help={
        **IMAGE,
        "save": "write it to this file too, an OCI archive",
        "rebuild": "build it a second time, and compare the digests",
    }
)
@door
def image(
    _: Context,
    stack: str,
    sources: str = "",
    offline: bool = False,
    base: str = "",
    save: str = "",
    rebuild: bool = False,
    amdlibm_archive: str = "",
) -> None:
    """Build and verify a stack's Docker image, theano-fast:<stack>."""
    make = imaging.rebuild if rebuild else imaging.build
    options = _options(sources, offline, amdlibm_archive=amdlibm_archive)
    make(stack, options, base, _path(save))


@task(help={key: IMAGE[key] for key in ("sources", "offline", "base")})
@door
def images(_: Context, sources: str = "", offline: bool = False, base: str = "") -> None:
    """Build and verify the images of all CPU stacks."""
    imaging.build_all(_options(sources, offline), base)


@task(name="base-image")
@door
def base_image(_: Context) -> None:
    """Make the images' base from the host's Debian mirrors, anew."""
    imaging.build_base()


@task(
    name="references",
    help={
        **{key: FETCH[key] for key in ("sources", "offline")},
        "peers": "of these too, by a comma: jax, pytensor",
    },
)
@door
def references_(_: Context, peers: str = "", sources: str = "", offline: bool = False) -> None:
    """Install the environments to compare with: stock Theano, and peers."""
    for name in [references.STOCK, *_names(peers)]:
        references.create(name, _options(sources, offline))


@task(
    help={
        "what": "compile: time to a first training call; run: time of calls",
        "stack": "the stacks to measure beside stock Theano, by a comma",
        "peers": "compile: of these too, by a comma: jax, pytensor",
        "graphs": f"compile: of these only, by a comma: {', '.join(compilation.GRAPHS)}",
        "quick": "leave out what takes 20 minutes to compile",
    }
)
@door
def bench(
    _: Context,
    what: str = "compile",
    stack: str = "openblas",
    peers: str = "",
    graphs: str = "",
    quick: bool = False,
) -> None:
    """Measure stacks side by side with stock Theano and its peers."""
    if what not in ("compile", "run"):
        raise UsageError(f"--what={what} is unknown", "choose compile or run")
    environments = benches.prepare(_names(stack), _names(peers))
    if what == "run":
        speed.measure(environments, quick)
    else:
        compilation.measure(environments, _names(graphs) or list(compilation.GRAPHS), quick)


@task(
    name="conformance",
    help={
        **STACK,
        "suite": "quick (about 10 minutes on 2 cores) or full",
        "shard": "I/N: of N parts of the suite, run the I-th",
        "jobs": "files to run at once (default: the CPUs at hand)",
        "gpu": "compute on this machine's NVIDIA GPU, not with PoCL (--stack=cuda)",
        "reference": "run them on stock Theano instead, to compare with",
    },
)
@door
def conform(
    _: Context,
    stack: str = "openblas",
    suite: str = "quick",
    shard: str = "1/1",
    jobs: int = 0,
    gpu: bool = False,
    reference: bool = False,
) -> None:
    """Run Theano's own tests, and hold them against recipes/theano/conformance.toml."""
    selection = conformance.select(suite, shard, gpu)
    if reference:
        conformance.refer(selection, jobs)
    else:
        conformance.judge(stack, selection, jobs)


@task(help={"cache": "the per-user cache of sources and packages too"})
@door
def clean(_: Context, cache: bool = False) -> None:
    """Remove what was built in this checkout."""
    pipeline.clean(cache)


@task
@door
def lint(_: Context) -> None:
    """Run ruff, mypy and shellcheck, and look for build numbers that should have risen."""
    checks.lint()


@task(help={"unit": "only the tests that build nothing", "select": "pytest's -k expression"})
@door
def test(_: Context, unit: bool = False, select: str = "") -> None:
    """Run the unit tests; build the openblas stack, and test it and the builder on it."""
    checks.test(unit, select)


class Invoke(Program):
    """Invoke, but for words that it does not know."""

    def parse_tasks(self) -> None:
        """Invoke's own, with this project's message and exit code."""
        try:
            super().parse_tasks()
        except ParseError as error:
            hint = "./invoke --list tells the tasks, ./invoke --help TASK its flags"
            unknown = UsageError(str(error), hint)
            raise Exit(f"error: {unknown}", unknown.exit_code) from error


if __name__ == "__main__":
    Invoke(__version__, name="Invoke", binary="./invoke").run()
