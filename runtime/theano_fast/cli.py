"""The command ``theano-fast``: prove an environment, describe it, tell what undoes it; its cache.

Exit status: 0 verified, or nothing undoes the stack; 1 a check failed, or something does; 2 wrong
usage, 3 the environment is of no stack, 4 records differ, 130 interrupted, 141 nobody reads the
output any more.
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
    comparison,
    completion,
    doctor,
    facts,
    profiles,
    rc,
    report,
    stack,
    verify,
)
from theano_fast.checks import CHECKS
from theano_fast.profiling import command, comparing
from theano_fast.recording import command as record_command
from theano_fast.recording import comparing as records

VERIFIED, FAILED, USAGE, NO_STACK, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141

EXAMPLES = """examples:
  theano-fast info                          # what is inside, and which settings hold
  theano-fast verify --check blas numerics  # these checks alone
  theano-fast doctor train.py               # what undoes the stack, in train.py's code too
  theano-fast profile train.py 10           # a page of where the time goes
  theano-fast record train.py 10            # what it computes, to compare with another stack's
  theano-fast rc fastest > ~/.theanorc
  theano-fast cache warm train.py 1         # compile before a job's processes start
  eval "$(theano-fast completion bash)"     # or zsh; fish: | source

theano-fast COMMAND --help tells of each."""

# Commands whose words another module's parser reads: its make_parser, and its main.
WITH_PARSERS = (
    ("profile", "profile a program; read and compare what Theano printed", command),
    ("record", "record what a program computes; compare two records", record_command),
)
ERRORS = (
    cache.CacheError,
    comparing.ComparisonError,
    comparison.ComparisonError,
    profiles.ProfileError,
    rc.RcError,
    records.RecordError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    try:
        status = int(given.run(parser, given))
        sys.stdout.flush()
        return status
    except stack.StackError as error:
        print(f"theano-fast: {error}", file=sys.stderr)
        return NO_STACK
    except ERRORS as error:
        print(f"theano-fast: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # As of a program that SIGPIPE ends. What is still buffered has no reader either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except KeyboardInterrupt:
        print("theano-fast: interrupted; nothing was verified", file=sys.stderr)
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

    check = commands.add_parser("verify", help="prove that this environment is what it says")
    check.add_argument("--json", type=Path, metavar="FILE", help="write the report to FILE")
    check.add_argument("--full", action="store_true", help="run the scan check in full size too")
    check.add_argument("--check", nargs="+", default=[], metavar="NAME", help="run only these")
    check.add_argument(
        "--device",
        default="",
        metavar="NAME",
        help="prove this device of NVIDIA's, as cuda0; else the first one, if there is one",
    )
    check.add_argument("--list", action="store_true", help="list the checks and exit")
    check.add_argument(
        "--compiledir",
        type=Path,
        metavar="DIR",
        help="compile into DIR and keep it, not into a temporary directory",
    )
    check.set_defaults(run=run_verify)

    info = commands.add_parser("info", help="show the host, the stack, libraries and settings")
    info.add_argument("--json", action="store_true", help="as JSON")
    info.add_argument(
        "--blas",
        action="store_true",
        help="measure matrix products with each stack built beside this one, half a minute each",
    )
    info.set_defaults(run=run_info)

    mending = commands.add_parser("doctor", help="tell which settings undo the stack, and the mend")
    mending.add_argument(
        "program", nargs="?", type=Path, help="also what this program sets in its code"
    )
    mending.add_argument("--json", action="store_true", help="as JSON")
    mending.add_argument(
        "--quick", action="store_true", help="do not measure costs: a second or two for each flag"
    )
    mending.set_defaults(run=run_doctor)

    for name, told, module in WITH_PARSERS:
        other = commands.add_parser(name, help=told, add_help=False)
        other.add_argument("arguments", nargs=argparse.REMAINDER)
        other.set_defaults(run=lambda _, given, main=module.main: main(given.arguments))

    shell = commands.add_parser("completion", help="print what completes this in a shell")
    shell.add_argument("shell", choices=completion.SHELLS)
    shell.set_defaults(run=run_completion)

    config = commands.add_parser("rc", help="print a theanorc for this environment and machine")
    config.add_argument("preset", choices=[*rc.PRESETS, "translate"])
    config.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=Path.home() / ".theanorc",
        help="for translate: a theanorc of before Theano 1.0 (default: ~/.theanorc)",
    )
    config.set_defaults(run=run_rc)
    add_cache(commands.add_parser("cache", help="what Theano keeps compiled, on this kind of node"))
    return parser


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add the commands on the compile cache to a parser."""
    parser.set_defaults(run=run_cache)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    commands.add_parser("info", help="show what it and its seeds have")
    warm = commands.add_parser("warm", help="run a program, so that others find all compiled")
    warm.add_argument("--seconds", type=float, metavar="N", help="end it after N seconds")
    warm.add_argument("program", help="the file")
    warm.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own")
    clean = commands.add_parser("clean", help="remove from it what was used least recently")
    which = clean.add_mutually_exclusive_group(required=True)
    which.add_argument("--max-size", type=int, metavar="MB", help="until no more than MB are left")
    which.add_argument("--all", action="store_true", help="all")
    export = commands.add_parser("export", help="write it to an archive, which unpacks to a seed")
    export.add_argument("file", type=Path, help="the archive: a .tar.gz")


def run_verify(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Run the checks, printing each as it ends, and write the report.

    As one of several tasks of a Slurm job step, it prints at its end, in lines of its node.
    """
    if given.list:
        print("\n".join(f"{check.name:<12}{check.proves}" for check in CHECKS))
        return VERIFIED
    try:
        checks = verify.select(given.check)
    except ValueError as error:
        parser.error(str(error))
    if given.json and not given.json.parent.is_dir():
        parser.error(f"--json: {given.json.parent} is no directory")
    started, its_stack, records = time.monotonic(), stack.load(), []
    node = os.environ.get("SLURMD_NODENAME", "")
    alone = not node or os.environ.get("SLURM_NTASKS", "1") == "1"
    with compiledir(given.compiledir) as folder:
        known = gather_facts(verify.theano_flags(f"compiledir={folder}"))
        if alone:
            print(heading(its_stack, known), report.header(), sep="\n", flush=True)
        for record in verify.run(checks, given.full, folder, given.device):
            records.append(record)
            if alone:
                print(report.row(record), flush=True)
    verified = verify.verified(records)
    summary = report.summary(its_stack, records, verified)
    seconds = time.monotonic() - started
    if given.json:
        tree = report.document(its_stack, known, records, given.full, verified)
        file = given.json if alone else given.json.with_stem(f"{given.json.stem}-{node}")
        report.write(file, report.to_json(tree))
    if not alone:
        cpu = known["host"]["cpu"]
        print(report.of_node(node, f"{cpu}, {summary} in {seconds:.0f} s", records), flush=True)
        return VERIFIED if verified else FAILED
    for record in records:
        if record.details:
            print(f"\n{record.name}:", *record.details, sep="\n")
        if record.traceback:
            print(f"\n{record.name}:\n{record.traceback}", file=sys.stderr)
    print(f"\n{summary} in {seconds:.0f} s")
    return VERIFIED if verified else FAILED


def run_info(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Print what the reports say of the machine and the environment."""
    its_stack = stack.load()
    tree = {
        "stack": its_stack.name,
        "axes": dict(its_stack.axes),
        **gather_facts(verify.theano_flags()),
    }
    if given.blas:
        tree["gemm"] = comparison.compare(comparison.built())
    print(report.to_json(tree).rstrip() if given.json else report.render_facts(tree))
    if given.blas and not given.json:
        print("", comparison.render(tree["gemm"]), sep="\n")
    return VERIFIED


def run_doctor(_: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Print what holds here and why; fail if something undoes the stack."""
    its_stack = stack.load()
    known = doctor.examine(given.program, not given.quick)
    print(
        report.to_json({"stack": its_stack.name, **known}).rstrip()
        if given.json
        else f"{its_stack.name}: {sys.prefix}\n{doctor.render(known)}"
    )
    return VERIFIED if doctor.healthy(known) else FAILED


def run_completion(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Print a shell's completion of the command."""
    others = {name: module.make_parser() for name, _, module in WITH_PARSERS}
    print(completion.script(given.shell, parser, others), end="")
    return VERIFIED


def run_rc(_: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Print a preset's theanorc, or an old one's in today's flags, with what was changed."""
    if given.preset == "translate":
        flags, messages = rc.translate(rc.read(given.file))
    else:
        gpus = rc.devices() if stack.load().axes["device"] == "cuda" else 0
        flags, messages = rc.preset(given.preset, gpus), ()
    print("\n".join(messages), file=sys.stderr, end="\n" if messages else "")
    print(rc.render(flags), end="")
    return VERIFIED


def run_cache(_: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Do what is asked for with the compile cache."""
    status = VERIFIED
    match given.command:
        case "info":
            told = cache.info()
        case "warm":
            status, told = cache.warm([given.program, *given.arguments], given.seconds)
        case "clean":
            told = cache.clean(given.max_size)
        case _:
            told = cache.export(given.file)
    print(told)
    return status


def gather_facts(flags: str) -> dict[str, Any]:
    """Return the host's and the environment's facts; an error in place of what cannot be had.

    Theano is imported in another process, with these THEANO_FLAGS: an environment that crashes
    must not end the report.
    """
    known = {"fixes": facts.fixes(), "host": facts.host(), "versions": facts.versions()}
    if amdlibm := facts.amdlibm():
        known["amdlibm"] = amdlibm
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
            return {**known, **json.loads(answer.read_text())}
    last = done.stderr.strip().splitlines()[-1:]
    return {**known, "error": " ".join([verify.ending(done.returncode), *last])}


def heading(its_stack: stack.Stack, known: dict[str, Any]) -> str:
    """Return the table's title: the stack, what it is made of, and the machine."""
    made = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    host = known["host"]
    return f"{its_stack.name}: {made}\n{host['cpu']}, {host['cpus_usable']} CPUs usable\n"


@contextlib.contextmanager
def compiledir(kept: Path | None) -> Iterator[Path]:
    """Give a compilation directory: kept where one is named, else one that is removed.

    Verification must neither lean on what the user has compiled, nor leave anything there.
    """
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="theano-fast-compiledir-") as folder:
            yield Path(folder).resolve()
