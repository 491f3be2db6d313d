"""Record the inputs and results of a program's functions; compare two records.

Exit code of compare: 0 if nothing differs beyond rounding, 4 if something differs.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from theano_fast import report, verify
from theano_fast.recording import record_comparison, recorder

DIFFERS = 4
EXAMPLES = """examples:
  theano-fast record train.py 10                         # writes train-record.json
  theano-fast record run --python OTHER/bin/python --out stock.json train.py 10
  theano-fast record compare train-record.json stock.json
  theano-fast record run --nodes 2 train.py 10           # also record each node of function 2
"""


def main(arguments: Sequence[str]) -> int:
    """Run ``theano-fast record`` with arguments, and return its exit status.

    Raises:
        record_comparison.RecordError: a record could not be written or read.
    """
    # ``run`` can be omitted, unless the program has the name of a command.
    commands = ("run", "compare", "-h", "--help")
    words = list(arguments) if not arguments or arguments[0] in commands else ["run", *arguments]
    options = make_parser().parse_args(words)
    return int(options.run(options))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of ``theano-fast record``."""
    parser = argparse.ArgumentParser(
        prog="theano-fast record",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    running = commands.add_parser(
        "run", help="run a program and write its record; the word run can be omitted"
    )
    running.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the record to FILE (default: PROGRAM-record.json)",
    )
    running.add_argument(
        "--python",
        default=sys.executable,
        metavar="FILE",
        help="run the program with this Python and its Theano (default: this environment's)",
    )
    running.add_argument(
        "--calls",
        type=int,
        default=10,
        metavar="N",
        help="record the first N calls of each function (default: 10)",
    )
    running.add_argument(
        "--nodes",
        type=int,
        default=0,
        metavar="N",
        help="also record all nodes of function number N; compare prints the numbers",
    )
    running.add_argument("program", type=Path, help="the program's file")
    running.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    running.set_defaults(run=run_program)
    comparing = commands.add_parser("compare", help="print the first difference of two records")
    comparing.add_argument("file", nargs=2, type=Path, help="two records")
    comparing.add_argument(
        "--tolerance",
        type=float,
        default=1.0,
        metavar="X",
        help="multiply the tolerances by X (default: 1)",
    )
    comparing.add_argument("--json", action="store_true", help="print JSON")
    comparing.set_defaults(run=run_compare)
    return parser


def run_program(options: argparse.Namespace) -> int:
    """Run a program unchanged, write its record, and return the program's exit code."""
    out = (options.out or Path(f"{options.program.stem}-record.json")).absolute()
    if not options.program.is_file():
        raise record_comparison.RecordError(f"{options.program} is not a file")
    if not out.parent.is_dir():
        raise record_comparison.RecordError(f"--out: {out.parent} is not a directory")
    out.unlink(missing_ok=True)
    recorder_options = {"file": str(out), "calls": options.calls, "nodes": options.nodes}
    words = (json.dumps(recorder_options), str(options.program), *options.arguments)
    try:
        done = subprocess.run([options.python, recorder.__file__, *words], check=False)
    except OSError as error:
        raise record_comparison.RecordError(
            f"--python: {options.python}: {error.strerror}"
        ) from error
    exit_text = f"{options.program.name} {verify.describe_exit(done.returncode)}"
    if not out.exists():
        raise record_comparison.RecordError(f"{exit_text}, and wrote no record")
    functions = record_comparison.read(out)["functions"]
    calls = sum(function["called"] for function in functions)
    print(f"{exit_text}; {len(functions)} functions, {calls} calls; see {out}", file=sys.stderr)
    return done.returncode


def run_compare(options: argparse.Namespace) -> int:
    """Print the comparison of two records; return DIFFERS if they differ."""
    one, other = map(record_comparison.read, options.file)
    comparison = record_comparison.compare(one, other, options.tolerance)
    if options.json:
        tree = {
            "functions": [vars(function) for function in comparison.functions],
            "first": comparison.first.to_json() if comparison.first else None,
            "notes": list(comparison.notes),
        }
        print(report.to_json(tree), end="")
    else:
        names = list(map(str, options.file))
        print("\n".join(record_comparison.make_table(comparison, names)))
    return DIFFERS if comparison.first else 0
