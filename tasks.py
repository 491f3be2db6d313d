"""The tasks: flags to one call each.

Read by ./invoke, and by any Invoke of the host's: nothing is imported here but Invoke and what
needs nothing itself.
"""

from __future__ import annotations

import difflib
import errno
import functools
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke import __version__
from invoke.context import Context
from invoke.exceptions import Exit, ParseError
from invoke.program import Program
from invoke.tasks import Task, task

from builder.common.errors import DiskFull, NotWritable, TheanoFastError, UsageError

if TYPE_CHECKING:
    from builder.pipeline import Options

ROOT = Path(__file__).resolve().parent
STACK = {"stack": "name of the stack; `invoke stacks` lists them"}
FETCH = {
    **STACK,
    "sources": "directory looked into for sources before anything is downloaded",
    "offline": "download nothing",
}
WITH = {
    "with_": "programs to install beside it: jupyter, keras, keras-2.2, lasagne, mpi4py, nolearn,"
    " pymc3, pymc3-3.7"
}
AMDLIBM = {
    "amdlibm_archive": "AMD's release archive of AOCL-LibM, in place of the open amdlibm",
}
BUILD = {
    **FETCH,
    **WITH,
    "engine": "rattler-build, or conda-build (>= 26.5) if that is on PATH",
    "jobs": "recipes to build at once (default: one more than CPUs at hand)",
    "bundle": "archive that `invoke fetch --bundle` wrote: take all sources from it",
    **AMDLIBM,
    "locked": "fail if packages differ from those in envs/<stack>",
    "quiet": "say nothing but errors and the last line",
    "verbose": "show what goes to the logs, too, as it comes",
    "timings": "draw what was built when; kept in build/reports/<stack>-timings.json",
}
IMAGE = {
    **FETCH,
    **WITH,
    **AMDLIBM,
    "base": "image to build on (default: what `invoke base-image` makes)",
}
INTERRUPTED = 130
# What keeps what it has done, when it is interrupted: the others begin anew.
GO_ON = ("build", "packages", "lock", "env", "fetch", "image", "images", "conformance")


class Door(Task):  # type: ignore[type-arg] # of any function
    """A task that turns this project's errors into a message and their exit code."""

    def __init__(self, body: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        # Before 2.0, Invoke refuses a function with annotations.
        body.__annotations__ = {}
        super().__init__(body, *args, **kwargs)

    def get_arguments(self, *args: Any, **kwargs: Any) -> Any:
        """As Invoke's, which takes what it has read out of ``help``."""
        told = dict(self.help)
        try:
            return super().get_arguments(*args, **kwargs)
        finally:
            self.help = told

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run it, in an interpreter that has the builder's tools."""
        if not _equipped():
            sys.stdout.flush()
            os.execvp("sh", ["sh", str(ROOT / "invoke"), *sys.argv[1:]])
        # What a task has begun, a container for one, it ends on SIGTERM too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            if kwargs.get("stack", "") is None:
                from builder.stack import stacks

                names = ", ".join(stack.name for stack in stacks.load_all())
                raise UsageError("which stack? --stack=NAME is missing", f"choose one of: {names}")
            super().__call__(*args, **kwargs)
        except TheanoFastError as error:
            raise Exit(f"error: {error}", error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            words = f"interrupted: {interrupt}" if str(interrupt) else "interrupted"
            words += "; run again to go on from here" if self.name in GO_ON else ""
            raise Exit(words, INTERRUPTED) from None
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


door = functools.partial(task, klass=Door)


def _equipped() -> bool:
    """Whether this interpreter has the builder's tools: ./invoke leaves the list of them in it."""
    try:
        listed = Path(sys.prefix, "requirements.txt").read_bytes()
    except OSError:
        return False
    return listed == (ROOT / "requirements.txt").read_bytes()


def _options(
    sources: str,
    offline: bool,
    engine: str = "rattler-build",
    jobs: int = 0,
    bundle: str = "",
    amdlibm_archive: str = "",
    locked: bool = False,
    timings: bool = False,
) -> Options:
    from builder import pipeline

    archive = _path(amdlibm_archive)
    return pipeline.Options(
        _path(sources), offline, engine, jobs, _path(bundle), archive, locked, timings
    )


def _path(text: str) -> Path | None:
    return Path(text).expanduser().resolve() if text else None


def _with(stack: str, programs: str) -> str:
    """The name of a stack with programs beside it."""
    from builder.stack import stacks

    return stacks.canonical(stacks.WITH.join([stack, *_names(programs)]))


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


@door(
    optional=["audit"],
    help={"audit": "how old the sources are, and which have newer releases; =NAME for one stack's"},
)
def stacks(_: Context, audit: bool | str = False) -> None:
    """List the stacks, and which are built and verified."""
    from builder import pipeline
    from builder.maintenance import audit as audits

    if audit:
        audits.audit("" if audit is True else str(audit))
    else:
        pipeline.overview()


@door(
    positional=[],
    help={
        **FETCH,
        **WITH,
        "to": "copy them into this directory, to be carried elsewhere",
        "bundle": "write this archive: sources, this repository, the builder's tools",
    },
)
def fetch(
    _: Context,
    stack: str,
    with_: str = "",
    sources: str = "",
    offline: bool = False,
    to: str = "",
    bundle: str = "",
) -> None:
    """Fetch and verify a stack's sources."""
    from builder import pipeline

    pipeline.fetch(_with(stack, with_), _options(sources, offline), _path(to), _path(bundle))


def _stage(name: str, stage: str, summary: str) -> Any:
    """The task that runs the pipeline up to and with one stage."""

    def run(
        _: Context,
        stack: str,
        with_: str = "",
        sources: str = "",
        offline: bool = False,
        engine: str = "rattler-build",
        jobs: int = 0,
        bundle: str = "",
        amdlibm_archive: str = "",
        locked: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        timings: bool = False,
    ) -> None:
        from builder import pipeline
        from builder.common import progress

        if quiet and verbose:
            raise UsageError("--quiet and --verbose exclude each other", "leave one of them out")
        if quiet or verbose:
            progress.set_level(progress.Level.QUIET if quiet else progress.Level.VERBOSE)
        options = _options(sources, offline, engine, jobs, bundle, amdlibm_archive, locked, timings)
        getattr(pipeline, stage)(_with(stack, with_), options)

    run.__doc__ = summary
    return door(name=name, help=BUILD, positional=[])(run)


packages = _stage("packages", "make_packages", "Build a stack's packages into build/channel.")
lock = _stage("lock", "make_lock", "Resolve a stack and write envs/<stack>.")
env = _stage("env", "make_environment", "Install a stack's environment into build/envs/<stack>.")
build = _stage(
    "build",
    "build",
    """Build a stack: fetch, packages, environment, verification, report.

    Example: ./invoke build --stack=openblas
    """,
)


@door(
    positional=[],
    help={
        **FETCH,
        **WITH,
        **AMDLIBM,
        "package": "only this package, and those made by the same recipe",
        "turn": "of those that take minutes only one: a number, of the day for one, tells which",
    },
)
def rebuild(
    _: Context,
    stack: str,
    with_: str = "",
    sources: str = "",
    offline: bool = False,
    package: str = "",
    turn: int = 0,
    amdlibm_archive: str = "",
) -> None:
    """Build a stack's packages a second time, elsewhere and otherwise, and compare the bytes."""
    from builder import pipeline

    options = _options(sources, offline, amdlibm_archive=amdlibm_archive)
    pipeline.rebuild(_with(stack, with_), options, package, turn)


@door(positional=[], help={**STACK, **WITH, **AMDLIBM})
def sbom(_: Context, stack: str, with_: str = "", amdlibm_archive: str = "") -> None:
    """Write a built stack's software bill of materials (CycloneDX)."""
    from builder import pipeline

    pipeline.bill(_with(stack, with_), _options("", offline=True, amdlibm_archive=amdlibm_archive))


@door(positional=[], help={**STACK, **WITH, "full": "the training step in its full size"})
def verify(_: Context, stack: str, with_: str = "", full: bool = False) -> None:
    """Let a built environment prove itself."""
    from builder import pipeline

    pipeline.verify(_with(stack, with_), ["--full"] if full else [])


@door(positional=[], help={**STACK, "suites": "Debian's codenames, with commas between"})
def hosts(_: Context, stack: str, suites: str = "bullseye,trixie,sid") -> None:
    """Let a stack's environment prove itself on bare hosts of other releases."""
    from builder import pipeline
    from builder.proof import hosts as proof

    proof.prove(stack, suites.split(","), pipeline.Options())


@door(
    positional=[], help={**FETCH, **WITH, **AMDLIBM, "to": "the archive (default: in build/packs)"}
)
def pack(
    _: Context,
    stack: str,
    with_: str = "",
    sources: str = "",
    offline: bool = False,
    to: str = "",
    amdlibm_archive: str = "",
) -> None:
    """Write a stack as one archive that runs where it is unpacked, without conda."""
    from builder import pipeline

    options = _options(sources, offline, amdlibm_archive=amdlibm_archive)
    pipeline.pack(_with(stack, with_), options, _path(to))


@door(
    positional=[],
    help={
        "to": "the channel's directory, to which packages are added; or, for images, the URL of a"
        " registry's repository: https://registry.example.org/theano-fast",
        "stack": "the stacks, by a comma (default: all that are built)",
        "address": "where clients find it, for the locks (default: the directory's)",
    },
)
def publish(_: Context, to: str, stack: str = "", address: str = "") -> None:
    """Write a conda channel that a web server can serve, with locks; or push images."""
    from builder import image_pipeline, pipeline

    options = _options("", offline=True)
    if "://" in to:
        image_pipeline.publish(_names(stack), options, to)
    else:
        pipeline.publish(_names(stack), options, Path(to).expanduser().resolve(), address)


@door(
    positional=[],
    help={
        **IMAGE,
        "save": "write it to this file too, an OCI archive",
        "sif": "write it to this file too, for Apptainer, and beside it a .def and its OCI archive",
        "rebuild": "build it a second time, and compare the digests",
    },
)
def image(
    _: Context,
    stack: str,
    with_: str = "",
    sources: str = "",
    offline: bool = False,
    base: str = "",
    save: str = "",
    sif: str = "",
    rebuild: bool = False,
    amdlibm_archive: str = "",
) -> None:
    """Build and verify a stack's Docker image, theano-fast:<stack>."""
    from builder import image_pipeline

    make = image_pipeline.rebuild if rebuild else image_pipeline.build
    options = _options(sources, offline, amdlibm_archive=amdlibm_archive)
    target = _path(sif)
    archive = _path(save) or (target and target.with_suffix(".tar"))
    make(_with(stack, with_), options, base, archive)
    if archive and target:
        image_pipeline.for_apptainer(archive, target)


@door(help={key: IMAGE[key] for key in ("sources", "offline", "base")})
def images(_: Context, sources: str = "", offline: bool = False, base: str = "") -> None:
    """Build and verify the images of all CPU stacks but those of 2017."""
    from builder import image_pipeline

    image_pipeline.build_all(_options(sources, offline), base)


@door(name="base-image")
def base_image(_: Context) -> None:
    """Make the images' base from the host's Debian mirrors, anew."""
    from builder import image_pipeline

    image_pipeline.build_base()


@door(
    name="references",
    help={
        **{key: FETCH[key] for key in ("sources", "offline")},
        "peers": "of these too, by a comma: jax, pytensor",
    },
)
def references_(_: Context, peers: str = "", sources: str = "", offline: bool = False) -> None:
    """Install the environments to compare with: stock Theano, and peers."""
    from builder.measure import references

    for name in [references.STOCK, *_names(peers)]:
        references.create(name, _options(sources, offline))


@door(
    help={
        "what": "compile: time to a first training call; run: time of calls; programs: time of the"
        " tests of Keras, Lasagne and PyMC3; 2017: the table of Theano 0.8.2, on its stacks and"
        " those beside them",
        "stack": "the stacks to measure beside stock Theano, by a comma",
        "peers": "compile: of these too, by a comma: jax, pytensor",
        "graphs": "compile: of these only, by a comma: ntm, ntm1, lstm, mlp, conv, tiny, "
        "transformer, vae; or of another size, as mlp200",
        "quick": "leave out what takes 20 minutes to compile; 2017: a small machine",
    }
)
def bench(
    _: Context,
    what: str = "compile",
    stack: str = "openblas",
    peers: str = "",
    graphs: str = "",
    quick: bool = False,
) -> None:
    """Measure stacks side by side with stock Theano and its peers."""
    from builder.measure import bench as benches
    from builder.measure import call_time, compile_time, seed_table

    if what not in ("compile", "run", "programs", "2017"):
        raise UsageError(f"--what={what} is unknown", "choose compile, run, programs or 2017")
    if what == "2017":
        chosen = benches.built([*seed_table.old_stacks(), *_names(stack)])
        seed_table.measure(chosen, "small" if quick else "full", 100)
        return
    if what == "programs":
        from builder.proof import program_times

        for name in _names(stack):
            program_times.measure(name)
        return
    environments = benches.prepare(_names(stack), _names(peers))
    if what == "run":
        call_time.measure(environments, quick)
    else:
        compile_time.measure(environments, _names(graphs) or list(compile_time.GRAPHS), quick)


@door(
    name="conformance",
    help={
        **STACK,
        "with_": "run the own tests of this program instead: keras, keras-2.2, lasagne, nolearn,"
        " pymc3 or pymc3-3.7",
        "suite": "quick (about 10 minutes on 2 cores) or full",
        "shard": "I/N: of N parts of the suite, run the I-th",
        "jobs": "files to run at once (default: the CPUs at hand)",
        "gpu": "compute on this machine's NVIDIA GPU, not with PoCL (--stack=cuda)",
        "reference": "run them on stock Theano instead, to compare with",
    },
)
def conform(
    _: Context,
    stack: str = "openblas",
    with_: str = "",
    suite: str = "quick",
    shard: str = "1/1",
    jobs: int = 0,
    gpu: bool = False,
    reference: bool = False,
) -> None:
    """Run Theano's own tests, or a program's, and hold them against its conformance.toml."""
    from builder.proof import conformance

    selection = conformance.select(suite, shard, gpu)
    if reference:
        conformance.refer(selection, jobs)
    else:
        conformance.judge(_with(stack, with_), selection, jobs)


@door(
    name="fuzz",
    help={
        **STACK,
        "seconds": "how long (default: 60, unless there is --programs)",
        "programs": "how many programs",
        "seed": "a number; the same one makes the same programs",
        "category": "of these categories only, with commas between",
    },
)
def fuzz_(
    _: Context,
    stack: str = "openblas",
    seconds: int = 0,
    programs: int = 0,
    seed: int = 1,
    category: str = "",
) -> None:
    """Run random programs in a stack, and hold them against Theano unoptimized and stock's."""
    from builder.proof import fuzzing

    limits = fuzzing.Limits(seconds or (0 if programs else 60), programs)
    fuzzing.fuzz(stack, limits, seed, category)


@door(
    help={
        **{key: FETCH[key] for key in ("sources", "offline")},
        "serve": "serve it to this machine, too",
        "port": "on this port",
        "manual": "leave out Theano's own manual",
    }
)
def docs(
    _: Context,
    serve: bool = False,
    port: int = 8000,
    manual: bool = True,
    sources: str = "",
    offline: bool = False,
) -> None:
    """Make the site of documents in build/site/html, with references made from the code."""
    from builder.documents import messages, reference, site

    made = {
        "tasks.md": reference.of_tasks(
            (value for value in globals().values() if isinstance(value, Door)), FOR_USERS
        ),
        "commands.md": reference.of_commands(reference.parsers()),
        "messages.md": messages.page(),
    }
    html = site.build(made, manual, _options(sources, offline))
    if serve:
        site.serve(html, port)


@door(help={"cache": "the per-user cache of sources and packages too"})
def clean(_: Context, cache: bool = False) -> None:
    """Remove what was built in this checkout."""
    from builder import pipeline

    pipeline.clean(cache)


@door(
    name="patches",
    help={
        "recipe": "the recipe whose patches they are",
        "save": "write the commits of the work tree back to the patches",
        "offline": "download nothing",
    },
)
def patches_(_: Context, recipe: str = "theano", save: bool = False, offline: bool = False) -> None:
    """Open a recipe's source as a git work tree, one commit a patch; or save it."""
    from builder.maintenance import patches

    if save:
        patches.save_tree(recipe)
    else:
        patches.open_tree(recipe, offline)


@door(
    name="python-profile",
    help={**STACK, **{key: FETCH[key] for key in ("sources", "offline")}},
)
def python_profile_(
    _: Context, stack: str = "openblas", sources: str = "", offline: bool = False
) -> None:
    """Record anew the profile that the interpreter is compiled with (PGO)."""
    from builder.maintenance import python_profile

    python_profile.record(stack, _options(sources, offline))


@door
def lint(_: Context) -> None:
    """Run ruff, mypy, clang-format and shellcheck; find build numbers that should have risen."""
    from builder.maintenance import checks

    checks.lint()


@door(help={"unit": "only the tests that build nothing", "select": "pytest's -k expression"})
def test(_: Context, unit: bool = False, select: str = "") -> None:
    """Run the unit tests; build the openblas stack, and test it and the builder on it."""
    from builder.maintenance import checks

    checks.test(unit, select)


# What a user of stacks needs; the other tasks are for those who work on them.
FOR_USERS = (
    "stacks",
    "build",
    "verify",
    "pack",
    "publish",
    "image",
    "images",
    "fetch",
    "sbom",
    "docs",
    "clean",
)


class Invoke(Program):
    """Invoke, but for words that it does not know, and for none at all."""

    def parse_tasks(self) -> None:
        """Invoke's own, with this project's message and exit code."""
        try:
            super().parse_tasks()
        except ParseError as error:
            unknown = UsageError(str(error).rstrip("!"), self._hint(str(error)))
            raise Exit(f"error: {unknown}", unknown.exit_code) from error

    def _hint(self, message: str) -> str:
        """The known words that are nearest to those in a message, or where all of them are."""
        words = [context.name for context in self.parser.contexts.values()]
        words += [flag for context in self.parser.contexts.values() for flag in context.flags]
        told = re.findall(r"'([^']+)'", message)
        near = {best for word in told for best in difflib.get_close_matches(word, words, 1, 0.75)}
        where = "./invoke --list tells the tasks, ./invoke TASK --help its flags"
        return f"did you mean {' or '.join(sorted(near))}? {where}" if near else where

    def no_tasks_given(self) -> None:
        """Tell what there is to do."""
        lines = ["A verified Theano for a numeric stack, in one command:", ""]
        lines += ["  ./invoke build --stack=openblas", ""]
        tasks = {
            task.name: (task.__doc__ or "").splitlines()[0]
            for task in self.collection.tasks.values()
        }
        others = sorted(set(tasks) - set(FOR_USERS))
        for title, names in (("Tasks", FOR_USERS), ("To work on stacks and on this", others)):
            lines += [f"{title}:", *(f"  {name:<13} {tasks[name]}" for name in names), ""]
        print("\n".join([*lines, "./invoke TASK --help tells a task's flags."]))
        raise Exit


def main() -> None:
    """Run Invoke on this file's tasks, in whichever directory."""
    program = Invoke(__version__, name="Invoke", binary="./invoke")
    program.run([sys.argv[0], "--search-root", str(ROOT), *sys.argv[1:]])


if __name__ == "__main__":
    main()
