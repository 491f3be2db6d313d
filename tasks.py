"""Define the tasks of ``./invoke``; each task turns its flags into one call of the builder.

The host's Invoke can also read this file, without the builder's tools. Therefore the imports at the
top of this file need only Invoke and the standard library. A task imports the builder's other
modules when it runs.
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
# If one of these tasks is interrupted, the next run continues it. Other tasks start again.
RESUMABLE = ("build", "packages", "lock", "env", "fetch", "image", "images", "conformance")


def _list_programs(*, with_conformance: bool = False) -> str:
    """List the programs of stacks.toml; if this Python cannot read TOML, name the file instead.

    Args:
        with_conformance: list only the programs whose recipes have a conformance.toml.
    """
    try:
        from builder.stack import stacks
    except ImportError:
        return "see builder/stack/stacks.toml"
    return ", ".join(
        program
        for program in stacks.list_programs()
        if not with_conformance or (ROOT / "recipes" / program / "conformance.toml").exists()
    )


@dataclasses.dataclass(frozen=True)
class Flag:
    """The default and the help text of a flag. The default of a path is ""."""

    default: object
    help: str


# A flag that several tasks share is declared once: here, or as a field of Options.
SHARED = {
    "stack": Flag(Parameter.empty, "name of the stack; `./invoke stacks` lists the names"),
    "with_": Flag("", f"programs to add to the stack, separated by commas: {_list_programs()}"),
    **{
        option.name: Flag("" if option.default is None else option.default, option.metadata["help"])
        for option in dataclasses.fields(Options)
    },
    "base": Flag("", "base image (default: the image of `./invoke base-image`)"),
    "peers": Flag("", "frameworks to compare with, separated by commas: jax, pytensor"),
    "quiet": Flag(False, "print only errors and the result"),
    "verbose": Flag(False, "print the logs too, line by line"),
}
SOURCES = ("sources", "offline")
STACK = ("stack", "with_")
BUILD = (*STACK, *(option.name for option in dataclasses.fields(Options)), "quiet", "verbose")


class BuilderTask(Task):  # type: ignore[type-arg] # of any function
    """A task that calls a function, and turns the function's errors into messages and exit codes.

    Args:
        function: its parameters are the task's own flags. It may also have the parameters ``stack``
            (the stack's name with its programs) and ``options`` (the shared flags of Options).
        name: the name of the task.
        shared: the names of flags in SHARED.
        help_texts: the help texts of the task's own flags.
        optional: the task's own flags that may be given without a value.
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
        own_flags = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for key, parameter in parameters.items()
            if key not in ("_", "options", *shared)
        ]
        shared_flags = [
            Parameter(key, Parameter.KEYWORD_ONLY, default=SHARED[key].default) for key in shared
        ]

        def run_function(_: Context, **values: Any) -> None:
            _set_output_level(
                **{key: values.pop(key) for key in ("quiet", "verbose") if key in values}
            )
            if "stack" in shared:
                values["stack"] = _format_stack_name(values["stack"], values.pop("with_", ""))
            if "options" in parameters:
                values["options"] = _make_options(
                    {key: value for key, value in values.items() if key in shared}
                )
            function(_, **{key: value for key, value in values.items() if key in parameters})

        run_function.__doc__ = function.__doc__
        # Before 2.0, Invoke refuses a function with annotations.
        run_function.__annotations__ = {}
        context = Parameter("_", Parameter.POSITIONAL_OR_KEYWORD)
        signature = inspect.Signature([context, *shared_flags, *own_flags])
        run_function.__signature__ = signature  # type: ignore[attr-defined]
        super().__init__(
            run_function,
            name=name,
            positional=[],
            optional=tuple(optional),
            help={**{key: SHARED[key].help for key in shared}, **help_texts},
        )

    def get_arguments(self, *args: Any, **kwargs: Any) -> Any:
        """Return the task's arguments; keep the help texts, which Invoke's method removes."""
        help_texts = dict(self.help)
        try:
            return super().get_arguments(*args, **kwargs)
        finally:
            self.help = help_texts

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the task in an interpreter that has the builder's tools.

        If this interpreter lacks the tools, replace the process by the script ``./invoke``, which
        installs them.

        Raises:
            Exit: the task failed or was interrupted. Exit has the message and the exit code.
        """
        if not _has_tools():
            sys.stdout.flush()
            os.execvp("sh", ["sh", str(ROOT / "invoke"), *sys.argv[1:]])
        # Handle SIGTERM like Ctrl-C, so that tasks clean up: for example, stop their containers.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            super().__call__(*args, **kwargs)
        except TheanoFastError as error:
            raise Exit(f"error: {error}", error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            message = f"interrupted: {interrupt}" if str(interrupt) else "interrupted"
            message += "; run again to continue" if self.name in RESUMABLE else ""
            raise Exit(message, INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.ENOSPC:
                failure: TheanoFastError = DiskFull(
                    f"the disk is full: {error}", "free some space and run again"
                )
            elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                failure = NotWritable(
                    str(error),
                    "use a checkout that you own; to use another cache than ~/.cache/theano-fast, "
                    "set THEANO_FAST_CACHE",
                )
            else:
                raise
            raise Exit(f"error: {failure}", failure.exit_code) from error


def builder_task(
    *shared: str,
    name: str = "",
    help: Mapping[str, str] | None = None,
    optional: Collection[str] = (),
) -> Callable[[Callable[..., None]], BuilderTask]:
    """Return a decorator that converts a function to a task.

    Args:
        shared: the names of flags in SHARED.
        name: the task's name; by default the function's name.
        help: the help texts of the task's own flags.
        optional: the task's own flags that may be given without a value.
    """

    def decorate(function: Callable[..., None]) -> BuilderTask:
        return BuilderTask(function, name or function.__name__, shared, help or {}, optional)

    return decorate


def _has_tools() -> bool:
    """Return whether this interpreter has the builder's current tools.

    ``./invoke`` copies requirements.txt into .venv after it installed the tools.
    """
    try:
        installed = Path(sys.prefix, "requirements.txt").read_bytes()
    except OSError:
        return False
    return installed == (ROOT / "requirements.txt").read_bytes()


def _make_options(values: Mapping[str, Any]) -> Options:
    """Make Options from the values of flags. A flag with the default None in Options is a path."""
    fields: dict[str, Any] = {
        option.name: _resolve_path(values[option.name])
        if option.default is None
        else values[option.name]
        for option in dataclasses.fields(Options)
        if option.name in values
    }
    return Options(**fields)


def _resolve_path(text: str) -> Path | None:
    """Return the absolute path of a flag's value; None for ""."""
    return Path(text).expanduser().resolve() if text else None


def _set_output_level(*, quiet: bool = False, verbose: bool = False) -> None:
    from builder.common import progress

    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other", "omit one of them")
    if quiet or verbose:
        progress.set_level(progress.Level.QUIET if quiet else progress.Level.VERBOSE)


def _format_stack_name(stack: str | None, programs: str) -> str:
    """Return the name of a stack with its programs, such as ``mkl+keras+pymc3``.

    Args:
        stack: the value of ``--stack``; None if the flag is missing.
        programs: the value of ``--with``, separated by commas.

    Raises:
        UsageError: ``--stack`` is missing.
    """
    from builder.stack import stacks

    if stack is None:
        names = ", ".join(row.name for row in stacks.load_all())
        raise UsageError("the flag --stack=NAME is missing", f"choose one of: {names}")
    return stacks.normalize_name(stacks.WITH.join([stack, *_split_names(programs)]))


def _split_names(names: str) -> list[str]:
    """Split a flag's value at commas."""
    return [name.strip() for name in names.split(",") if name.strip()]


@builder_task(
    optional=["audit"],
    help={
        "audit": "print the age of each source, and newer releases; =NAME: only sources of this"
        " stack"
    },
)
def stacks(_: Context, audit: bool | str = False) -> None:
    """List the stacks and their states: built, verified."""
    from builder import checkout
    from builder.maintenance import audit as audits

    if audit:
        audits.audit("" if audit is True else str(audit))
    else:
        checkout.list_stacks()


@builder_task(
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


@builder_task(*BUILD)
def packages(_: Context, stack: str, options: Options) -> None:
    """Build a stack's packages into build/channel."""
    from builder import pipeline

    pipeline.build_packages(stack, options)


@builder_task(*BUILD)
def lock(_: Context, stack: str, options: Options) -> None:
    """Build a stack's packages and write its lock file: envs/<stack>, or build/locks/<stack>.

    build/locks is for --with and --amdlibm-archive.
    """
    from builder import pipeline

    pipeline.write_lock(stack, options)


@builder_task(*BUILD)
def env(_: Context, stack: str, options: Options) -> None:
    """Install a stack's environment into build/envs/<stack>."""
    from builder import pipeline

    pipeline.install_environment(stack, options)


@builder_task(*BUILD)
def build(_: Context, stack: str, options: Options) -> None:
    """Build a stack: fetch, packages, environment, verification, report.

    Example: ./invoke build --stack=openblas
    """
    from builder import pipeline

    pipeline.build_stack(stack, options)


@builder_task(
    *STACK,
    *SOURCES,
    "amdlibm_archive",
    help={
        "package": "rebuild only the recipe of this package",
        "turn": "rebuild all recipes with short builds, and one recipe with a long build; this"
        " number (such as the day) selects it",
    },
)
def rebuild(_: Context, stack: str, options: Options, package: str = "", turn: int = 0) -> None:
    """Build a stack's packages again, in another directory and at another time; compare bytes."""
    from builder import second_build

    second_build.rebuild_packages(stack, options, package, turn)


@builder_task(*STACK, "amdlibm_archive")
def sbom(_: Context, stack: str, options: Options) -> None:
    """Write a built stack's software bill of materials (CycloneDX)."""
    from builder import bill

    bill.write_bill(stack, dataclasses.replace(options, offline=True))


@builder_task(
    *STACK,
    help={
        "full": "also run the training step in full size (minutes)",
        "processor": "verify on emulated processors, such as Nehalem,Haswell",
    },
)
def verify(_: Context, stack: str, full: bool = False, processor: str = "") -> None:
    """Verify a built environment."""
    from builder import verification
    from builder.proof import processors

    arguments = ["--full"] if full else []
    if processor:
        processors.verify_on_processors(stack, _split_names(processor), arguments)
    else:
        verification.verify(stack, arguments)


@builder_task("stack", help={"suites": "code names of Debian releases, separated by commas"})
def hosts(_: Context, stack: str, suites: str = "bullseye,trixie,sid") -> None:
    """Verify a stack's environment in minimal root file systems of other Debian releases."""
    from builder.proof import hosts as proof

    proof.verify_on_hosts(stack, _split_names(suites), Options())


@builder_task(
    *STACK, *SOURCES, "amdlibm_archive", help={"to": "the archive (default: in build/packs)"}
)
def pack(_: Context, stack: str, options: Options, to: str = "") -> None:
    """Write a stack's environment as an archive to unpack in any directory, without conda."""
    from builder import packing

    packing.pack_stack(stack, options, _resolve_path(to))


@builder_task(
    help={
        "to": "the directory of the channel; to push images, the URL of a registry's repository:"
        " https://registry.example.org/theano-fast",
        "stack": "the stacks, separated by commas (default: all built stacks)",
        "address": "the channel's URL in the lock files (default: the directory's file:// URL)",
    },
)
def publish(_: Context, to: str = "", stack: str = "", address: str = "") -> None:
    """Write a conda channel and lock files for a web server, or push images to a registry."""
    from builder import publishing

    if not to:
        raise UsageError("the flag --to is missing", "pass --to=DIRECTORY, or --to=URL for images")
    options = Options(offline=True)
    if "://" in to:
        publishing.publish_images(_split_names(stack), options, to)
    else:
        directory = Path(to).expanduser().resolve()
        publishing.publish_packages(_split_names(stack), options, directory, address)


@builder_task(
    *STACK,
    *SOURCES,
    "base",
    "amdlibm_archive",
    help={
        "save": "also write the image to this file, an OCI archive",
        "sif": "also write the image to this SIF file for Apptainer; keep its definition file and"
        " OCI archive",
        "rebuild": "build the image twice and compare the digests of the manifests",
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

    build_function = image_pipeline.rebuild_image if rebuild else image_pipeline.build_image
    target = _resolve_path(sif)
    archive = _resolve_path(save) or (target and target.with_suffix(".tar"))
    build_function(stack, options, base, archive)
    if archive and target:
        image_pipeline.convert_to_sif(archive, target)


@builder_task(*SOURCES, "base")
def images(_: Context, options: Options, base: str) -> None:
    """Build and verify the images of all CPU stacks except the stacks of 2017."""
    from builder import image_pipeline

    image_pipeline.build_all_images(options, base)


@builder_task(name="base-image")
def base_image(_: Context) -> None:
    """Build the base image from the host's Debian mirrors."""
    from builder import image_pipeline

    image_pipeline.build_base()


@builder_task("peers", *SOURCES, name="references")
def references_(_: Context, options: Options, peers: str) -> None:
    """Install the reference environments: stock Theano, and the frameworks of --peers."""
    from builder.measure import references

    for name in [references.STOCK, *_split_names(peers)]:
        references.install_reference(name, options)


@builder_task(
    "peers",
    help={
        "what": "compile: time to the first training call; run: time of calls; programs: time of"
        " the tests of Keras, Lasagne and PyMC3; 2017: the benchmark of 2017, on the stacks of"
        " 2017 and on --stack",
        "stack": "the stacks to compare with stock Theano, separated by commas",
        "graphs": "with --what=compile: the graphs, separated by commas: ntm, ntm1, lstm, mlp, "
        "conv, tiny, transformer, vae; a number sets another size: mlp200",
        "runs": "with --what=compile: number of runs; the report has all times and medians",
        "dtype": "with --what=compile: the dtype of the graphs' numbers, float64 or float32",
        "stock": "with --what=compile: --no-stock omits stock Theano",
        "quick": "omit the measurements that take 10 minutes or more; with --what=2017: train a"
        " small Neural Turing Machine",
        "tables": "measure nothing; write the tables of README and docs/ from bench/results",
    },
)
def bench(
    _: Context,
    peers: str,
    what: str = "compile",
    stack: str = "openblas",
    graphs: str = "",
    runs: int = 1,
    dtype: str = "float64",
    stock: bool = True,
    quick: bool = False,
    tables: bool = False,
) -> None:
    """Measure stacks; compare them with stock Theano and with the frameworks of --peers."""
    from builder.measure import bench as benches
    from builder.measure import benchmark_of_2017, call_time, compile_time, document_tables

    if tables:
        document_tables.update()
        return
    if dtype not in benches.TOLERANCES:
        raise UsageError(f"--dtype={dtype} is unknown", "choose float64 or float32")
    if what not in ("compile", "run", "programs", "2017"):
        raise UsageError(f"--what={what} is unknown", "choose compile, run, programs or 2017")
    if what != "compile" and not stock:
        raise UsageError("--no-stock is for --what=compile", "omit it")
    if what == "2017":
        stacks_of_2017 = benches.require_built(
            [*benchmark_of_2017.list_old_stacks(), *_split_names(stack)]
        )
        benchmark_of_2017.measure(stacks_of_2017, "small" if quick else "full", 100)
        return
    if what == "programs":
        from builder.proof import program_times

        for name in _split_names(stack):
            program_times.measure(name)
        return
    environments = benches.prepare_environments(_split_names(stack), _split_names(peers), stock)
    if what == "run":
        call_time.measure(environments, quick)
    else:
        chosen_graphs = _split_names(graphs) or list(compile_time.GRAPHS)
        compile_time.measure(environments, chosen_graphs, quick, runs, dtype)


@builder_task(
    name="conformance",
    help={
        "stack": SHARED["stack"].help,
        "with_": "run the tests of this program instead of Theano's: "
        + _list_programs(with_conformance=True),
        "suite": "quick (about 8 CPU seconds per test file) or full",
        "shard": "I/N: run the I-th of N parts of the suite",
        "jobs": "number of files to run at once (default: number of CPUs)",
        "gpu": "with --stack=cuda: compute on an NVIDIA GPU of this machine instead of with PoCL",
        "reference": "run the tests on stock Theano instead of on the stack",
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
    """Run the tests of Theano or a program; compare the outcomes with conformance.toml."""
    from builder.proof import conformance

    selection = conformance.make_selection(suite, shard, gpu)
    if reference:
        conformance.run_reference(selection, jobs)
    else:
        conformance.check_stack(_format_stack_name(stack, with_), selection, jobs)


@builder_task(
    name="fuzz",
    help={
        "stack": SHARED["stack"].help,
        "seconds": "duration in seconds (default: 60, or unlimited with --programs)",
        "programs": "number of programs (default: unlimited)",
        "seed": "seed of the random programs",
        "category": "run only programs of these categories, separated by commas",
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
    """Run random programs; compare with unoptimized Theano, stock Theano and NumPy."""
    from builder.proof import fuzzing

    limits = fuzzing.Limits(seconds or (0 if programs else 60), programs)
    fuzzing.fuzz(stack, limits, seed, _split_names(category))


@builder_task(
    *SOURCES,
    help={
        "serve": "serve the site on this machine",
        "port": "port of --serve",
        "manual": "--no-manual omits Theano's own manual",
    },
)
def docs(
    _: Context, options: Options, serve: bool = False, port: int = 8000, manual: bool = True
) -> None:
    """Build the documentation site in build/site/html, with pages generated from the code."""
    from builder.documents import messages, reference, site

    tasks = [value for value in globals().values() if isinstance(value, BuilderTask)]
    generated_pages = {
        "tasks.md": reference.format_tasks_page(tasks, FOR_USERS),
        "commands.md": reference.format_commands_page(reference.make_parsers()),
        "messages.md": messages.format_page(),
    }
    html = site.build_site(generated_pages, manual, options)
    if serve:
        site.serve_site(html, port)


@builder_task(help={"cache": "also remove the per-user cache of sources and packages"})
def clean(_: Context, cache: bool = False) -> None:
    """Remove the results of all builds in this checkout."""
    from builder import checkout

    checkout.clean(cache=cache)


@builder_task(
    "offline",
    name="patches",
    help={
        "recipe": "the recipe of the patches",
        "save": "write the commits of the work tree back to the patches",
        "check": "compile and run a small program with Theano's source after each patch",
        "without": "test Theano's source without this patch; print the tests that fail",
        "select": "with --check: check only patches whose names contain one of these strings,"
        " separated by commas; with --without: pytest's -k expression",
        "turn": "with --check: check only changed patches, and a few other patches that this number"
        " (such as the day) selects",
    },
)
def patches_(
    _: Context,
    options: Options,
    recipe: str = "theano",
    save: bool = False,
    check: bool = False,
    without: str = "",
    select: str = "",
    turn: int = 0,
) -> None:
    """Open a recipe's source as a git work tree with one commit per patch; save or test patches."""
    from builder.maintenance import patch_states, patches, theano_changes

    if check:
        patch_states.check(_split_names(select), turn, options.offline)
    elif without:
        patch_states.test_without(without, select, options.offline)
    elif save:
        patches.save_tree(recipe)
        theano_changes.update()
    else:
        patches.open_tree(recipe, options.offline)


@builder_task(*SOURCES, name="python-profile", help={"stack": SHARED["stack"].help})
def python_profile_(_: Context, options: Options, stack: str = "openblas") -> None:
    """Run examples/ to record the profile for Python's profile-guided optimization (PGO)."""
    from builder.maintenance import python_profile

    python_profile.record_profile(stack, options)


@builder_task()
def lint(_: Context) -> None:
    """Run ruff, mypy, clang-format and shellcheck; check documents, patches and build numbers."""
    from builder.maintenance import checks

    checks.run_lint()


@builder_task(
    help={
        "unit": "run only the unit tests, which build nothing",
        "select": "pytest's -k expression",
        "thorough": "also run the tests that take long or repeat a check under other conditions",
        "turn": "run a seventh of the tests that --thorough adds; this number (such as the day)"
        " selects them",
    }
)
def test(
    _: Context, unit: bool = False, select: str = "", thorough: bool = False, turn: int = 0
) -> None:
    """Run the unit tests; build the openblas stack; test the stack and the builder."""
    from builder.maintenance import checks

    options = ["--thorough"] if thorough else []
    options += [f"--turn={turn}"] if turn else []
    checks.run_tests(unit, select, *options)


# The tasks for users of stacks, in the order of the overview. Other tasks are for developers.
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
    """Invoke's program, with suggestions for unknown words and an overview of the tasks."""

    def parse_tasks(self) -> None:
        """Parse the command line; report errors with this project's message and exit code."""
        try:
            super().parse_tasks()
        except ParseError as error:
            usage_error = UsageError(str(error).rstrip("!"), self._make_hint(error))
            raise Exit(f"error: {usage_error}", usage_error.exit_code) from error

    def _make_hint(self, error: ParseError) -> str:
        """Return a hint that names the tasks and flags most similar to the quoted unknown words."""
        words = [*self.parser.contexts, *(error.context.flags if error.context else ())]
        unknown_words = re.findall(r"'([^']+)'", str(error))
        similar_words = {
            match
            for word in unknown_words
            for match in difflib.get_close_matches(word, words, 1, 0.75)
        }
        overview = (
            "to list the tasks: ./invoke --list; to list the flags of a task: ./invoke TASK --help"
        )
        if not similar_words:
            return overview
        return f"did you mean {' or '.join(sorted(similar_words))}? {overview}"

    def no_tasks_given(self) -> None:
        """Print an overview of the tasks and exit."""
        lines = ["Build and verify a stack with one command:", ""]
        lines += ["  ./invoke build --stack=openblas", ""]
        tasks = {
            task.name: (task.__doc__ or "").splitlines()[0]
            for task in self.collection.tasks.values()
        }
        for_developers = sorted(set(tasks) - set(FOR_USERS))
        width = max(map(len, tasks)) + 1
        for title, names in (("Tasks", FOR_USERS), ("For developers", for_developers)):
            lines += [f"{title}:", *(f"  {name:<{width}} {tasks[name]}" for name in names), ""]
        print("\n".join([*lines, "./invoke TASK --help prints a task's flags."]))
        raise Exit


def main() -> None:
    """Run Invoke on this file's tasks, from any working directory."""
    program = Invoke(__version__, name="Invoke", binary="./invoke")
    program.run([sys.argv[0], "--search-root", str(ROOT), *sys.argv[1:]])


if __name__ == "__main__":
    main()
