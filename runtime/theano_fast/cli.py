"""Verify, describe and tune a theano-fast environment; port old programs; profile and record.

Exit status:

- 0: success
- 1: a check failed, a setting disables a part of the stack, or a file cannot be used
- 2: wrong usage
- 3: the environment contains no stack
- 4: the two compared records differ
- 130: interrupted
- 141: the program that reads the output closed the pipe

profile, record and cache warm run a program, and end with its exit status.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from theano_fast import (
    __version__,
    cache,
    completion,
    doctor,
    facts,
    gemm_comparison,
    profiles,
    rc,
    report,
    stack,
    verify,
)
from theano_fast.checks import CHECKS
from theano_fast.porting import port, sources
from theano_fast.profiling import command as profile_command
from theano_fast.profiling import profile_comparison
from theano_fast.recording import command as record_command
from theano_fast.recording import record_comparison

VERIFIED, FAILED, USAGE, NO_STACK, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141

EXAMPLES = """examples:
  theano-fast info                          # show versions, libraries and settings
  theano-fast verify --check blas numerics  # run only these checks
  theano-fast doctor train.py               # find settings that disable parts of the stack
  theano-fast port train.py                 # convert from Python 2; list lines to check by hand
  theano-fast profile train.py 10           # write a page that shows where the time goes
  theano-fast record train.py 10            # record results, to compare them with another stack
  theano-fast rc fastest > fast.theanorc    # use it with THEANORC=fast.theanorc
  theano-fast cache warm train.py 1         # compile before the processes of a job start
  eval "$(theano-fast completion bash)"     # or zsh; fish: | source

theano-fast COMMAND --help describes a command."""

# Commands with their own parser: name, help text, and the module with make_parser and main.
WITH_PARSERS = (
    ("profile", "profile a program; read and compare Theano's profiles", profile_command),
    ("record", "record a program's inputs and results; compare two records", record_command),
)
ERRORS = (
    cache.CacheError,
    gemm_comparison.ComparisonError,
    profile_comparison.ComparisonError,
    profiles.ProfileError,
    rc.RcError,
    record_comparison.RecordError,
    sources.SourceError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    try:
        status = int(options.run(parser, options))
        sys.stdout.flush()
        return status
    except stack.StackError as error:
        print(f"theano-fast: {error}", file=sys.stderr)
        return NO_STACK
    except ERRORS as error:
        print(f"theano-fast: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # At exit, Python flushes stdout again. Let it write to /dev/null, not to the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except KeyboardInterrupt:
        print("theano-fast: interrupted; the command is incomplete", file=sys.stderr)
        return INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    """Make the command line's parser."""
    parser = argparse.ArgumentParser(
        prog="theano-fast",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"theano-fast {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_verify(_add_command(commands, "verify", "check that this environment works"))
    _add_info(_add_command(commands, "info", "show the host, the stack, libraries and settings"))
    _add_doctor(_add_command(commands, "doctor", "find settings that disable parts of the stack"))
    _add_port(
        _add_command(
            commands, "port", "convert programs from Python 2; list lines to check by hand"
        )
    )
    for name, text, module in WITH_PARSERS:
        # This parser must pass all words, such as --help, to the module's parser. No word begins
        # with the prefix "\0", so this parser finds no option.
        command = commands.add_parser(name, help=text, add_help=False, prefix_chars="\0")
        command.add_argument("arguments", nargs=argparse.REMAINDER)
        command.set_defaults(run=lambda _, options, main=module.main: main(options.arguments))

    shell = _add_command(
        commands, "completion", "print the script that completes theano-fast commands in a shell"
    )
    shell.add_argument(
        "shell", choices=completion.SHELLS, help='use: eval "$(theano-fast completion bash)"'
    )
    shell.set_defaults(run=run_completion)

    config = _add_command(commands, "rc", "print a theanorc for this environment and machine")
    config.add_argument(
        "preset",
        choices=[*rc.PRESETS, "translate"],
        help="fastest: float32 and g++ flags that assume no NaN and no infinity; development:"
        " FAST_COMPILE on the CPU; multi-gpu: fastest, with a context for each GPU; translate:"
        " replace the old flags of a file",
    )
    config.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=Path.home() / ".theanorc",
        help="for translate: a theanorc with old flags (default: ~/.theanorc)",
    )
    config.set_defaults(run=run_rc)
    _add_cache(_add_command(commands, "cache", "show, fill, clean or export the compile cache"))
    return parser


def _add_command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Add a subcommand; show its text in the list of commands and in the command's own help.

    Args:
        commands: the result of ``add_subparsers``.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    return parser


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report to FILE")
    parser.add_argument(
        "--full", action="store_true", help="also run the scan check in full size (minutes)"
    )
    parser.add_argument(
        "--check", nargs="+", default=[], metavar="NAME", help="run only these checks"
    )
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="NAME", help="omit these checks"
    )
    parser.add_argument(
        "--device",
        default="",
        metavar="NAME",
        help="check this NVIDIA device, such as cuda0 (default: the first device, if any)",
    )
    parser.add_argument("--list", action="store_true", help="list the checks and exit")
    parser.add_argument(
        "--compiledir",
        type=Path,
        metavar="DIR",
        help="compile into DIR and keep it (default: a temporary directory)",
    )
    parser.set_defaults(run=run_verify)


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--blas",
        action="store_true",
        help="measure matrix products in all stacks with this Python version in the directory of"
        " this environment (30 s per stack)",
    )
    parser.set_defaults(run=run_info)


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "program",
        nargs="?",
        type=Path,
        help="also check the flags that this program sets, and the names that it imports",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="do not measure the cost of each flag (1 or 2 s per flag)",
    )
    parser.set_defaults(run=run_doctor)


def _add_port(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FILE|DIR",
        help="a program, or a directory: convert all Python files below it",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the changes as a diff, and write nothing"
    )
    parser.set_defaults(run=run_port)


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run_cache)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    _add_command(commands, "info", "show the contents of the compiledir and the seed caches")
    warm = _add_command(commands, "warm", "run a program to fill the cache")
    warm.add_argument("--seconds", type=float, metavar="N", help="stop the program after N seconds")
    warm.add_argument("program", help="the program's file")
    warm.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    clean = _add_command(commands, "clean", "remove the least recently used entries, or all")
    limit = clean.add_mutually_exclusive_group(required=True)
    limit.add_argument(
        "--max-size",
        type=int,
        metavar="MB",
        help="keep MB megabytes, and all entries that were used in the last day",
    )
    limit.add_argument("--all", action="store_true", help="remove all entries")
    export = _add_command(commands, "export", "write an archive that unpacks to a seed cache")
    export.add_argument("file", type=Path, help="the archive: a .tar.gz")


def run_verify(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Run the checks, print each result as its check ends, and write the report.

    In a Slurm job step with several tasks, print only at the end, and begin each line with the
    node's name, because Slurm mixes the output of the tasks.
    """
    if options.list:
        print("\n".join(f"{check.name:<12}{check.proves}" for check in CHECKS))
        return VERIFIED
    try:
        checks = verify.select(options.check, options.without)
    except ValueError as error:
        parser.error(str(error))
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json: {options.json.parent} is not a directory")
    started, this_stack, records = time.monotonic(), stack.load(), []
    node = os.environ.get("SLURMD_NODENAME", "")
    is_single_task = not node or os.environ.get("SLURM_NTASKS", "1") == "1"
    with make_compiledir(options.compiledir) as compiledir:
        environment = gather_facts(verify.append_flags(f"compiledir={compiledir}"))
        if is_single_task:
            print(
                format_title(this_stack, environment), report.format_header(), sep="\n", flush=True
            )
        for record in verify.run(checks, options.full, compiledir, options.device):
            records.append(record)
            if is_single_task:
                print(report.format_row(record), flush=True)
    verified = verify.is_verified(records)
    summary = report.format_summary(this_stack, records, verified)
    seconds = time.monotonic() - started
    if options.json:
        tree = report.make_document(this_stack, environment, records, options.full, verified)
        file = (
            options.json
            if is_single_task
            else options.json.with_stem(f"{options.json.stem}-{node}")
        )
        report.write(file, report.to_json(tree))
    if not is_single_task:
        cpu = environment["host"]["cpu"]
        text = report.format_node(node, f"{cpu}, {summary} in {seconds:.0f} s", records)
        print(text, flush=True)
        return VERIFIED if verified else FAILED
    for record in records:
        if record.details:
            print(f"\n{record.name}:", *record.details, sep="\n")
        if record.traceback:
            print(f"\n{record.name}:\n{record.traceback}", file=sys.stderr)
    print(f"\n{summary} in {seconds:.0f} s")
    return VERIFIED if verified else FAILED


def run_info(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print the facts of verify's report, about the machine and the environment."""
    this_stack = stack.load()
    tree = {
        "stack": this_stack.name,
        "axes": dict(this_stack.axes),
        **gather_facts(verify.append_flags()),
    }
    if options.blas:
        tree["gemm"] = gemm_comparison.compare(gemm_comparison.find_built_stacks())
    print(report.to_json(tree).rstrip() if options.json else report.render_facts(tree))
    if options.blas and not options.json:
        print("", gemm_comparison.render(tree["gemm"]), sep="\n")
    return VERIFIED


def run_doctor(_: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print the diagnosis; return FAILED if a setting disables a part of the stack."""
    this_stack = stack.load()
    diagnosis = doctor.examine(options.program, not options.quick)
    print(
        report.to_json({"stack": this_stack.name, **diagnosis}).rstrip()
        if options.json
        else f"{this_stack.name}: {sys.prefix}\n{doctor.render(diagnosis)}"
    )
    return VERIFIED if doctor.is_healthy(diagnosis) else FAILED


def run_port(_: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Port programs; return FAILED if a program cannot be ported."""
    status = VERIFIED
    for line, failed in port.run(options.paths, options.dry_run):
        print(f"theano-fast: {line}" if failed else line, file=sys.stderr if failed else sys.stdout)
        status = FAILED if failed else status
    return status


def run_completion(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    own_parsers = {name: module.make_parser() for name, _, module in WITH_PARSERS}
    print(completion.make_script(options.shell, parser, own_parsers), end="")
    return VERIFIED


def run_rc(_: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print a preset's theanorc, or a translated theanorc; print the changes on stderr."""
    if options.preset == "translate":
        flags, messages = rc.translate(rc.read(options.file))
    else:
        gpus = rc.count_devices() if stack.load().axes["device"] == "cuda" else 0
        flags, messages = rc.make_preset(options.preset, gpus), ()
    print("\n".join(messages), file=sys.stderr, end="\n" if messages else "")
    print(rc.render(flags), end="")
    return VERIFIED


def run_cache(_: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Run a subcommand of ``theano-fast cache``."""
    status = VERIFIED
    match options.command:
        case "info":
            text = cache.describe_caches()
        case "warm":
            status, text = cache.warm([options.program, *options.arguments], options.seconds)
        case "clean":
            text = cache.clean(options.max_size)
        case _:
            text = cache.export(options.file)
    print(text)
    return status


def gather_facts(flags: str) -> dict[str, Any]:
    """Return facts about the host and the environment.

    Import Theano in another process, so that a crash of Theano does not end this process. If the
    import fails, ``error`` replaces the facts that need Theano.

    Args:
        flags: the value of THEANO_FLAGS in the other process.
    """
    tree = {
        "fixes": facts.read_fixes(),
        "host": facts.describe_host(),
        "versions": facts.list_versions(),
    }
    if amdlibm := facts.read_amdlibm():
        tree["amdlibm"] = amdlibm
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        answer = Path(folder, "facts.json")
        command = [sys.executable, "-P", "-m", "theano_fast.environment", str(answer)]
        done = subprocess.run(
            command,
            env={**os.environ, "THEANO_FLAGS": flags},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return {**tree, **json.loads(answer.read_text())}
    last = done.stderr.strip().splitlines()[-1:]
    return {**tree, "error": " ".join([verify.describe_exit(done.returncode), *last])}


def format_title(this_stack: stack.Stack, environment: dict[str, Any]) -> str:
    """Return the table's title: the stack, its versions, and the machine."""
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    host = environment["host"]
    return f"{this_stack.name}: {versions}\n{host['cpu']}, {host['cpus_usable']} CPUs usable\n"


@contextlib.contextmanager
def make_compiledir(path: Path | None) -> Iterator[Path]:
    """Create a compiledir and yield it, so that verify does not use the user's compile cache.

    Args:
        path: the directory; None creates a temporary directory and removes it at the end.
    """
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        yield path.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="theano-fast-compiledir-") as folder:
            yield Path(folder).resolve()
