"""The tasks: each turns its flags into one call of the builder.

./invoke reads this file, and so does any Invoke of the host: its imports need only Invoke and the
standard library.
"""

from __future__ import annotations

import dataclasses
import difflib
import errno
import inspect
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Any

from invoke import __version__
from invoke.context import Context
from invoke.exceptions import Exit, ParseError
from invoke.program import Program
from invoke.tasks import Task

from builder.common.errors import DiskFull, NotWritable, TheanoFastError, UsageError
from builder.options import Options

ROOT = Path(__file__).resolve().parent
INTERRUPTED = 130
# These tasks keep the results of an interrupted run; the others start again.
RESUMABLE = ("build", "packages", "lock", "env", "fetch", "image", "images", "conformance")


def _list_programs(*, with_known_tests: bool = False) -> str:
    """List the programs of stacks.toml; name that file if this Python cannot read TOML."""
    try:
        from builder.stack import stacks
    except ImportError:
        return "see builder/stack/stacks.toml"
    return ", ".join(
        program
        for program in stacks.list_programs()
        if not with_known_tests or (ROOT / "recipes" / program / "conformance.toml").exists()
    )


@dataclasses.dataclass(frozen=True)
class Flag:
    """A flag of several tasks: its default, "" for no path, and its help text."""

    default: object
    help: str


# Each flag of several tasks is declared once: here, or as a field of Options.
SHARED = {
    "stack": Flag(Parameter.empty, "name of the stack; `invoke stacks` lists them"),
    "with_": Flag("", f"programs to install beside Theano, by a comma: {_list_programs()}"),
    **{
        option.name: Flag("" if option.default is None else option.default, option.metadata["help"])
        for option in dataclasses.fields(Options)
    },
    "base": Flag("", "base image (default: the image of `invoke base-image`)"),
    "peers": Flag("", "frameworks to compare with, by a comma: jax, pytensor"),
    "quiet": Flag(False, "print only errors and the result"),
    "verbose": Flag(False, "print the logs too, line by line"),
}
SOURCES = ("sources", "offline")
STACK = ("stack", "with_")
BUILD = (*STACK, *(option.name for option in dataclasses.fields(Options)), "quiet", "verbose")


class Door(Task):  # type: ignore[type-arg] # of any function
    """A task with shared flags, whose errors become a message and an exit code.

    The function of a task has these parameters, if it uses them: ``stack``, the name with its
    programs; ``options``, an Options from the shared flags; and its own flags.
    """

    def __init__(
        self,
        function: Callable[..., None],
        name: str,
        shared: Collection[str],
        help_texts: Mapping[str, str],
        optional: Collection[str],
    ) -> None:
        parameters = inspect.signature(function).parameters
        own_flags = [p for key, p in parameters.items() if key not in ("_", "options", *shared)]
        shared_flags = [
            Parameter(key, Parameter.KEYWORD_ONLY, default=SHARED[key].default) for key in shared
        ]

        def body(_: Context, **values: Any) -> None:
            _set_output_level(
                **{key: values.pop(key) for key in ("quiet", "verbose") if key in values}
            )
            if "stack" in shared:
                values["stack"] = _name_stack(values["stack"], values.pop("with_", ""))
            if "options" in parameters:
                values["options"] = _make_options(
                    {key: value for key, value in values.items() if key in shared}
                )
            function(_, **{key: value for key, value in values.items() if key in parameters})

        body.__doc__ = function.__doc__
        # Before 2.0, Invoke refuses a function with annotations.
        body.__annotations__ = {}
        context = Parameter("_", Parameter.POSITIONAL_OR_KEYWORD)
        keyword_only = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own_flags]
        signature = inspect.Signature([context, *shared_flags, *keyword_only])
        body.__signature__ = signature  # type: ignore[attr-defined]
        super().__init__(
            body,
            name=name,
            positional=[],
            optional=tuple(optional),
            help={**{key: SHARED[key].help for key in shared}, **help_texts},
        )

    def get_arguments(self, *args: Any, **kwargs: Any) -> Any:
        """Return the arguments; Invoke's own method removes the help texts that it has read."""
        help_texts = dict(self.help)
        try:
            return super().get_arguments(*args, **kwargs)
        finally:
            self.help = help_texts

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the task in an interpreter that has the builder's tools."""
        if not _has_tools():
            sys.stdout.flush()
            os.execvp("sh", ["sh", str(ROOT / "invoke"), *sys.argv[1:]])
        # Tasks clean up on SIGTERM as on Ctrl-C: for example, they stop their containers.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            super().__call__(*args, **kwargs)
        except TheanoFastError as error:
            raise Exit(f"error: {error}", error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            message = f"interrupted: {interrupt}" if str(interrupt) else "interrupted"
            message += "; run again to go on from here" if self.name in RESUMABLE else ""
            raise Exit(message, INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.ENOSPC:
                failure: TheanoFastError = DiskFull(
                    f"no room left: {error}", "free some space and run again"
                )
            elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                failure = NotWritable(
                    str(error),
                    "use a checkout of your own; set THEANO_FAST_CACHE to use another cache than "
                    "~/.cache/theano-fast for sources and packages",
                )
            else:
                raise
            raise Exit(f"error: {failure}", failure.exit_code) from error


def door(
    *shared: str,
    name: str = "",
    help: Mapping[str, str] | None = None,
    optional: Collection[str] = (),
) -> Callable[[Callable[..., None]], Door]:
    """Make a function a task.

    Args:
        shared: flags of SHARED.
        name: the task's name, by default the function's.
        help: the help texts of the function's own flags.
        optional: the flags of the function that need no value.
    """

    def decorate(function: Callable[..., None]) -> Door:
        return Door(function, name or function.__name__, shared, help or {}, optional)

    return decorate


def _has_tools() -> bool:
    """Return whether this interpreter has the builder's tools; ./invoke leaves their list in it."""
    try:
        installed = Path(sys.prefix, "requirements.txt").read_bytes()
    except OSError:
        return False
    return installed == (ROOT / "requirements.txt").read_bytes()


def _make_options(values: Mapping[str, Any]) -> Options:
    """Make Options from the values of flags; those with the default None are paths."""
    chosen: dict[str, Any] = {
        option.name: _resolve_path(values[option.name])
        if option.default is None
        else values[option.name]
        for option in dataclasses.fields(Options)
        if option.name in values
    }
    return Options(**chosen)


def _resolve_path(text: str) -> Path | None:
    return Path(text).expanduser().resolve() if text else None


def _set_output_level(*, quiet: bool = False, verbose: bool = False) -> None:
    from builder.common import progress

    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other", "leave one of them out")
    if quiet or verbose:
        progress.set_level(progress.Level.QUIET if quiet else progress.Level.VERBOSE)


def _name_stack(stack: str | None, programs: str) -> str:
    """Return the name of a stack with programs.

    Raises:
        UsageError: ``--stack`` is missing.
    """
    from builder.stack import stacks

    if stack is None:
        names = ", ".join(row.name for row in stacks.load_all())
        raise UsageError("which stack? --stack=NAME is missing", f"choose one of: {names}")
    return stacks.normalize_name(stacks.WITH.join([stack, *_split(programs)]))


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


@door(
    optional=["audit"],
    help={"audit": "print the age of the sources and newer releases; =NAME: only of this stack"},
)
def stacks(_: Context, audit: bool | str = False) -> None:
    """List the stacks, and which are built and verified."""
    from builder import checkout
    from builder.maintenance import audit as audits

    if audit:
        audits.audit("" if audit is True else str(audit))
    else:
        checkout.list_stacks()


@door(
    *STACK,
    *SOURCES,
    help={
        "to": "copy the sources to this directory, for a machine without a network",
        "bundle": "write an archive of the sources, this repository and the builder's tools",
    },
)
def fetch(_: Context, stack: str, options: Options, to: str = "", bundle: str = "") -> None:
    """Fetch and verify a stack's sources."""
    from builder import pipeline

    pipeline.fetch_stack(stack, options, _resolve_path(to), _resolve_path(bundle))


@door(*BUILD)
def packages(_: Context, stack: str, options: Options) -> None:
    """Build a stack's packages into build/channel."""
    from builder import pipeline

    pipeline.build_packages(stack, options)


@door(*BUILD)
def lock(_: Context, stack: str, options: Options) -> None:
    """Resolve a stack and write envs/<stack>."""
    from builder import pipeline

    pipeline.write_lock(stack, options)


@door(*BUILD)
def env(_: Context, stack: str, options: Options) -> None:
    """Install a stack's environment into build/envs/<stack>."""
    from builder import pipeline

    pipeline.install_environment(stack, options)


@door(*BUILD)
def build(_: Context, stack: str, options: Options) -> None:
    """Build a stack: fetch, packages, environment, verification, report.

    Example: ./invoke build --stack=openblas
    """
    from builder import pipeline

    pipeline.build_stack(stack, options)


@door(
    *STACK,
    *SOURCES,
    "amdlibm_archive",
    help={
        "package": "rebuild only the recipe of this package",
        "turn": "rebuild only one of the slow recipes; the number (such as the day's) selects it",
    },
)
def rebuild(_: Context, stack: str, options: Options, package: str = "", turn: int = 0) -> None:
    """Build a stack's packages again, in another environment, and compare the bytes."""
    from builder import second_build

    second_build.rebuild_packages(stack, options, package, turn)


@door(*STACK, "amdlibm_archive")
def sbom(_: Context, stack: str, options: Options) -> None:
    """Write a built stack's software bill of materials (CycloneDX)."""
    from builder import bill

    bill.write_bill(stack, dataclasses.replace(options, offline=True))


@door(
    *STACK,
    help={
        "full": "run the full-size training step",
        "processor": "verify on these emulated processors, by a comma: Nehalem,Haswell",
    },
)
def verify(_: Context, stack: str, full: bool = False, processor: str = "") -> None:
    """Verify a built environment."""
    from builder import verification
    from builder.proof import processors

    arguments = ["--full"] if full else []
    if processor:
        processors.verify(stack, _split(processor), arguments)
    else:
        verification.verify(stack, arguments)


@door("stack", help={"suites": "code names of Debian releases, by a comma"})
def hosts(_: Context, stack: str, suites: str = "bullseye,trixie,sid") -> None:
    """Verify a stack's environment on minimal systems of other Debian releases."""
    from builder.proof import hosts as proof

    proof.verify_on_hosts(stack, suites.split(","), Options())


@door(*STACK, *SOURCES, "amdlibm_archive", help={"to": "the archive (default: in build/packs)"})
def pack(_: Context, stack: str, options: Options, to: str = "") -> None:
    """Write a stack as one archive that runs without conda in any directory."""
    from builder import packing

    packing.pack_stack(stack, options, _resolve_path(to))


@door(
    help={
        "to": "the directory of the channel, which keeps its packages; for images, the URL of a"
        " registry's repository: https://registry.example.org/theano-fast",
        "stack": "the stacks, by a comma (default: all that are built)",
        "address": "the channel's URL for clients, written into the locks (default: the directory)",
    },
)
def publish(_: Context, to: str = "", stack: str = "", address: str = "") -> None:
    """Write a conda channel that a web server can serve, with locks; or push images."""
    from builder import publishing

    if not to:
        raise UsageError("publish where? --to is missing", "--to=DIRECTORY, or --to=URL for images")
    options = Options(offline=True)
    if "://" in to:
        publishing.publish_images(_split(stack), options, to)
    else:
        directory = Path(to).expanduser().resolve()
        publishing.publish_packages(_split(stack), options, directory, address)


@door(
    *STACK,
    *SOURCES,
    "base",
    "amdlibm_archive",
    help={
        "save": "also write the image to this file, an OCI archive",
        "sif": "also write the image to this file for Apptainer, with its .def and OCI archive",
        "rebuild": "build the image twice and compare the digests",
    },
)
def image(
    _: Context,
    stack: str,
    options: Options,
    base: str,
    save: str = "",
    sif: str = "",
    rebuild: bool = False,
) -> None:
    """Build and verify a stack's Docker image, theano-fast:<stack>."""
    from builder import image_pipeline

    make = image_pipeline.rebuild_image if rebuild else image_pipeline.build_image
    target = _resolve_path(sif)
    archive = _resolve_path(save) or (target and target.with_suffix(".tar"))
    make(stack, options, base, archive)
    if archive and target:
        image_pipeline.convert_to_sif(archive, target)


@door(*SOURCES, "base")
def images(_: Context, options: Options, base: str) -> None:
    """Build and verify the images of all CPU stacks except the stacks of 2017."""
    from builder import image_pipeline

    image_pipeline.build_all_images(options, base)


@door(name="base-image")
def base_image(_: Context) -> None:
    """Build the base image from the host's Debian mirrors."""
    from builder import image_pipeline

    image_pipeline.build_base()


@door("peers", *SOURCES, name="references")
def references_(_: Context, options: Options, peers: str) -> None:
    """Install the environments to compare with: stock Theano, and peers."""
    from builder.measure import references

    for name in [references.STOCK, *_split(peers)]:
        references.install_reference(name, options)


@door(
    "peers",
    help={
        "what": "compile: time to a first training call; run: time of calls; programs: time of the"
        " tests of Keras, Lasagne and PyMC3; 2017: the benchmark of 2017, on the stacks of Theano"
        " 0.8.2 and on --stack",
        "stack": "the stacks to compare with stock Theano, by a comma",
        "graphs": "compile: the graphs, by a comma: ntm, ntm1, lstm, mlp, conv, tiny, "
        "transformer, vae; or another size, such as mlp200",
        "quick": "leave out the graphs that take 20 minutes to compile; 2017: a small machine",
        "tables": "measure nothing; write the tables of README and docs/ from bench/results",
    },
)
def bench(
    _: Context,
    peers: str,
    what: str = "compile",
    stack: str = "openblas",
    graphs: str = "",
    quick: bool = False,
    tables: bool = False,
) -> None:
    """Measure stacks side by side with stock Theano and its peers."""
    from builder.measure import bench as benches
    from builder.measure import benchmark_of_2017, call_time, compile_time, document_tables

    if tables:
        document_tables.update()
        return
    if what not in ("compile", "run", "programs", "2017"):
        raise UsageError(f"--what={what} is unknown", "choose compile, run, programs or 2017")
    if what == "2017":
        chosen = benches.require_built([*benchmark_of_2017.list_old_stacks(), *_split(stack)])
        benchmark_of_2017.measure(chosen, "small" if quick else "full", 100)
        return
    if what == "programs":
        from builder.proof import program_times

        for name in _split(stack):
            program_times.measure(name)
        return
    environments = benches.prepare_environments(_split(stack), _split(peers))
    if what == "run":
        call_time.measure(environments, quick)
    else:
        compile_time.measure(environments, _split(graphs) or list(compile_time.GRAPHS), quick)


@door(
    name="conformance",
    help={
        "stack": SHARED["stack"].help,
        "with_": "run the tests of this program instead of Theano's: "
        + _list_programs(with_known_tests=True),
        "suite": "quick (about 10 minutes on 2 cores) or full",
        "shard": "I/N: run the I-th of N parts of the suite",
        "jobs": "number of files to run at once (default: number of CPUs)",
        "gpu": "compute on this machine's NVIDIA GPU, not with PoCL (--stack=cuda)",
        "reference": "run the tests on stock Theano instead, as the reference",
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
    """Run Theano's or a program's tests; compare the outcomes with its conformance.toml."""
    from builder.proof import conformance

    selection = conformance.make_selection(suite, shard, gpu)
    if reference:
        conformance.run_reference(selection, jobs)
    else:
        conformance.judge(_name_stack(stack, with_), selection, jobs)


@door(
    name="fuzz",
    help={
        "stack": SHARED["stack"].help,
        "seconds": "duration (default: 60, unless --programs is given)",
        "programs": "number of programs",
        "seed": "seed of the random programs",
        "category": "only programs of these categories, by a comma",
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
    """Run random programs in a stack; compare with Theano unoptimized, stock Theano and NumPy."""
    from builder.proof import fuzzing

    limits = fuzzing.Limits(seconds or (0 if programs else 60), programs)
    fuzzing.fuzz(stack, limits, seed, category)


@door(
    *SOURCES,
    help={
        "serve": "serve the site on this machine",
        "port": "port of --serve",
        "manual": "leave out Theano's own manual",
    },
)
def docs(
    _: Context, options: Options, serve: bool = False, port: int = 8000, manual: bool = True
) -> None:
    """Build the documentation site in build/site/html, with references made from the code."""
    from builder.documents import messages, reference, site

    tasks = [value for value in globals().values() if isinstance(value, Door)]
    generated_pages = {
        "tasks.md": reference.format_tasks_page(tasks, FOR_USERS),
        "commands.md": reference.format_commands_page(reference.make_parsers()),
        "messages.md": messages.format_page(),
    }
    html = site.build_site(generated_pages, manual, options)
    if serve:
        site.serve_site(html, port)


@door(help={"cache": "also remove the per-user cache of sources and packages"})
def clean(_: Context, cache: bool = False) -> None:
    """Remove all that was built in this checkout."""
    from builder import checkout

    checkout.clean(cache=cache)


@door(
    "offline",
    name="patches",
    help={
        "recipe": "the recipe of the patches",
        "save": "write the commits of the work tree back to the patches",
        "check": "check Theano's source after each patch: it compiles a program in C",
        "select": "with --check: parts of the names of patches, by a comma (default: all)",
    },
)
def patches_(
    _: Context,
    options: Options,
    recipe: str = "theano",
    save: bool = False,
    check: bool = False,
    select: str = "",
) -> None:
    """Open a recipe's source as a git work tree, with one commit per patch; save or check it."""
    from builder.maintenance import patch_states, patches, theano_changes

    if check:
        patch_states.check(_split(select), options.offline)
    elif save:
        patches.save_tree(recipe)
        theano_changes.update()
    else:
        patches.open_tree(recipe, options.offline)


@door(*SOURCES, name="python-profile", help={"stack": SHARED["stack"].help})
def python_profile_(_: Context, options: Options, stack: str = "openblas") -> None:
    """Record the profile for the interpreter's profile-guided optimization (PGO)."""
    from builder.maintenance import python_profile

    python_profile.record_profile(stack, options)


@door()
def lint(_: Context) -> None:
    """Run ruff, mypy, clang-format and shellcheck; find build numbers that must be raised."""
    from builder.maintenance import checks

    checks.run_lint()


@door(help={"unit": "only the unit tests, which build nothing", "select": "pytest's -k expression"})
def test(_: Context, unit: bool = False, select: str = "") -> None:
    """Run the unit tests; build the openblas stack; test the stack and the builder."""
    from builder.maintenance import checks

    checks.run_tests(unit, select)


# The tasks for users of stacks; the others are for developers.
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
    """Invoke with hints for unknown words, and with an overview for a call without a task."""

    def parse_tasks(self) -> None:
        """Parse the tasks; report errors with this project's message and exit code."""
        try:
            super().parse_tasks()
        except ParseError as error:
            unknown = UsageError(str(error).rstrip("!"), self._hint(str(error)))
            raise Exit(f"error: {unknown}", unknown.exit_code) from error

    def _hint(self, message: str) -> str:
        """Suggest the tasks and flags closest to the words in a message."""
        words = [context.name for context in self.parser.contexts.values()]
        words += [flag for context in self.parser.contexts.values() for flag in context.flags]
        unknown = re.findall(r"'([^']+)'", message)
        near = {
            best for word in unknown for best in difflib.get_close_matches(word, words, 1, 0.75)
        }
        overview = "./invoke --list lists the tasks, ./invoke TASK --help its flags"
        return f"did you mean {' or '.join(sorted(near))}? {overview}" if near else overview

    def no_tasks_given(self) -> None:
        """Print the tasks."""
        lines = ["A verified Theano for a numeric stack, in one command:", ""]
        lines += ["  ./invoke build --stack=openblas", ""]
        tasks = {
            task.name: (task.__doc__ or "").splitlines()[0]
            for task in self.collection.tasks.values()
        }
        others = sorted(set(tasks) - set(FOR_USERS))
        for title, names in (("Tasks", FOR_USERS), ("For developers", others)):
            lines += [f"{title}:", *(f"  {name:<13} {tasks[name]}" for name in names), ""]
        print("\n".join([*lines, "./invoke TASK --help prints a task's flags."]))
        raise Exit


def main() -> None:
    """Run Invoke on this file's tasks, from any working directory."""
    program = Invoke(__version__, name="Invoke", binary="./invoke")
    program.run([sys.argv[0], "--search-root", str(ROOT), *sys.argv[1:]])


if __name__ == "__main__":
    main()
