"""``theano-fast record``: record what a program's functions compute; hold records together.

Exit status of compare: 0 nothing differs beyond rounding, 4 something does.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from theano_fast import report, verify
from theano_fast.recording import comparing, recorder

DIFFERS = 4
EXAMPLES = """examples:
  theano-fast record train.py 10                         # train-record.json
  theano-fast record run --python OTHER/bin/python --out stock.json train.py 10
  theano-fast record compare train-record.json stock.json
  theano-fast record run --nodes 2 train.py 10           # also each node of function 2
"""


def main(arguments: Sequence[str]) -> int:
    """Run what follows ``theano-fast record`` and return its exit status.

    Raises:
        comparing.RecordError: a record could not be made, or read.
    """
    # A program may have any name but a command's.
    known = ("run", "compare", "-h", "--help")
    words = list(arguments) if not arguments or arguments[0] in known else ["run", *arguments]
    given = make_parser().parse_args(words)
    return int(given.run(given))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of what follows ``theano-fast record``."""
    parser = argparse.ArgumentParser(
        prog="theano-fast record",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    running = commands.add_parser("run", help="run a program, and record; the word may be left out")
    running.add_argument("--out", type=Path, metavar="FILE", help="default: PROGRAM-record.json")
    running.add_argument(
        "--python", default=sys.executable, metavar="FILE", help="run by this one, of any Theano"
    )
    running.add_argument("--calls", type=int, default=10, metavar="N", help="of each function (10)")
    running.add_argument(
        "--nodes",
        type=int,
        default=0,
        metavar="N",
        help="also all nodes of function N, as compare says",
    )
    running.add_argument("program", type=Path)
    running.add_argument("arguments", nargs=argparse.REMAINDER)
    running.set_defaults(run=run_program)
    sides = commands.add_parser("compare", help="tell where two records part")
    sides.add_argument("file", nargs=2, type=Path)
    sides.add_argument(
        "--tolerance", type=float, default=1.0, metavar="X", help="allow X times as much (1)"
    )
    sides.add_argument("--json", action="store_true", help="as JSON")
    sides.set_defaults(run=run_compare)
    return parser


def run_program(given: argparse.Namespace) -> int:
    """Run a program, unchanged, write its record, and return its status."""
    out = (given.out or Path(f"{given.program.stem}-record.json")).absolute()
    if not given.program.is_file():
        raise comparing.RecordError(f"{given.program} is no file")
    if not out.parent.is_dir():
        raise comparing.RecordError(f"--out: {out.parent} is no directory")
    out.unlink(missing_ok=True)
    options = {"file": str(out), "calls": given.calls, "nodes": given.nodes}
    words = (json.dumps(options), str(given.program), *given.arguments)
    try:
        done = subprocess.run([given.python, recorder.__file__, *words], check=False)
    except OSError as error:
        raise comparing.RecordError(f"--python: {given.python}: {error.strerror}") from error
    ended = f"{given.program.name} {verify.ending(done.returncode)}"
    if not out.exists():
        raise comparing.RecordError(f"{ended}, and left no record")
    functions = comparing.read(out)["functions"]
    calls = sum(each["called"] for each in functions)
    print(f"{ended}; {len(functions)} functions, {calls} calls; see {out}", file=sys.stderr)
    return done.returncode


def run_compare(given: argparse.Namespace) -> int:
    """Print where two records part."""
    ours, theirs = map(comparing.read, given.file)
    compared = comparing.compare(ours, theirs, given.tolerance)
    if given.json:
        tree = {
            "functions": [vars(each) for each in compared.functions],
            "first": vars(compared.first) if compared.first else None,
            "notes": list(compared.notes),
        }
        print(report.to_json(tree), end="")
    else:
        print("\n".join(comparing.table(compared, list(map(str, given.file)))))
    return DIFFERS if compared.first else 0
