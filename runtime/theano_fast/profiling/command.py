"""Run a program with Theano's profiler; read and compare profiles."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from theano_fast import profiles, report, verify
from theano_fast.profiling import advice, driver_calls, flame_graph, pages, profile_comparison

# Print all ops and nodes, with untruncated names.
FLAGS = (
    "profile=True,profiling.n_ops=10000,profiling.n_apply=10000,profiling.output_line_width=9999"
    # A node's trace must reach from Theano's code for gradients and scans up to the program's line.
    ",traceback.limit=60"
)

# The exit code after SIGINT, as in shells.
INTERRUPTED = 130
EXAMPLES = """examples:
  theano-fast profile train.py 10                # train-profile.html, .json, .speedscope.json
  theano-fast profile run --advise train.py 10   # also measure possible speed-ups
  theano-fast profile read OLD.txt --html old.html
  theano-fast profile compare OLD.txt NEW.txt --html both.html
"""


def main(arguments: Sequence[str]) -> int:
    """Run ``theano-fast profile`` with arguments, and return its exit status.

    Raises:
        profiles.ProfileError: a file is not a complete profile.
        profile_comparison.ComparisonError: no function or scan is in all files.
    """
    # ``run`` can be omitted, unless the program has the name of a command.
    commands = ("run", "read", "compare", "-h", "--help")
    words = list(arguments) if not arguments or arguments[0] in commands else ["run", *arguments]
    options = make_parser().parse_args(words)
    return int(options.run(options))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of ``theano-fast profile``."""
    parser = argparse.ArgumentParser(
        prog="theano-fast profile",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reading = commands.add_parser("read", help="show profiles that profile=True printed")
    reading.add_argument("file", nargs="+", type=Path, help="the output of a program")
    reading.set_defaults(run=run_read)
    comparing = commands.add_parser("compare", help="compare profiles of one program")
    comparing.add_argument(
        "file",
        nargs="+",
        type=Path,
        help="two or more files; the table has ratios to the first file",
    )
    comparing.set_defaults(run=run_compare)
    running = commands.add_parser(
        "run", help="run a program and write its profile; the word run can be omitted"
    )
    running.add_argument(
        "--out",
        type=Path,
        metavar="NAME",
        help="write NAME.html, NAME.json and NAME.speedscope.json (default: PROGRAM-profile)",
    )
    running.add_argument(
        "--advise",
        action="store_true",
        help="also run the program once per remedy, such as float32, and print the speed-ups",
    )
    running.add_argument("program", type=Path, help="the program's file")
    running.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    running.set_defaults(run=run_program)
    for command in (reading, comparing):
        command.add_argument("--html", type=Path, metavar="FILE", help="also write an HTML page")
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def read(file: Path) -> tuple[profiles.Profile, ...]:
    """Parse the profiles in a file; raises profiles.ProfileError, which names the file."""
    try:
        return profiles.parse(file.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise profiles.ProfileError(f"{file} cannot be read: {error.strerror}") from error
    except profiles.ProfileError as error:
        raise profiles.ProfileError(f"{file}, {error}") from error


def run_program(options: argparse.Namespace) -> int:
    """Run a program unchanged; write its profile in three files, and return its exit code."""
    out = options.out or Path(f"{options.program.stem}-profile")
    # List the remedies before the program runs: an error here must not lose the program's profile.
    remedies = list(advice.list_remedies(len(os.sched_getaffinity(0)))) if options.advise else []
    with tempfile.TemporaryDirectory(prefix="theano-fast-profile-") as folder:
        file, lines_file = Path(folder, "profile.txt"), Path(folder, "lines.json")
        driver_file = Path(f"{lines_file}.driver")
        flags = verify.append_flags(FLAGS, f"profiling.destination={file}")
        words = map(str, (lines_file, options.program, *options.arguments))
        done = subprocess.run(
            [sys.executable, "-m", "theano_fast.profiling.node_lines", *words],
            # Theano profiles on a GPU only if CUDA_LAUNCH_BLOCKING is 1: each launch then waits for
            # its kernel.
            env={
                "CUDA_LAUNCH_BLOCKING": "1",
                **os.environ,
                **driver_calls.prepare(Path(folder)),
                "THEANO_FLAGS": flags,
            },
            check=False,
        )
        exit_text = verify.describe_exit(done.returncode)
        if not file.exists():
            raise profiles.ProfileError(
                f"{options.program} {exit_text}, and called no Theano function"
            )
        lines = json.loads(lines_file.read_text()) if lines_file.exists() else {}
        counts = json.loads(driver_file.read_text()) if driver_file.exists() else {}
        parsed = [add_lines(profile, lines.get(profile.name, {})) for profile in read(file)]
    title = options.program.name
    suggestions = list(advice.find_python_ops(parsed))
    trials: tuple[advice.Trial, ...] = ()
    if options.advise:
        # A scheduler sends SIGTERM at its time limit. Treat SIGTERM as an interruption, so that
        # this process writes the measurements so far.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        print(f"{title}: {len(remedies) + 2} more runs to measure remedies", file=sys.stderr)
        trials = advice.measure_remedies(
            tuple(map(str, (options.program, *options.arguments))), remedies
        )
    texts = {
        ".html": pages.render_profiles(
            title, parsed, pages.render_advice(suggestions, trials) + pages.render_driver(counts)
        ),
        ".json": report.to_json(
            {
                "profiles": [profile.to_json() for profile in parsed],
                "driver": counts,
                "advice": {
                    "suggestions": suggestions,
                    "trials": [trial.to_json() for trial in trials],
                },
            }
        ),
        ".speedscope.json": report.to_json(
            flame_graph.to_speedscope(flame_graph.build_frames(title, parsed))
        ),
    }
    for suffix, text in texts.items():
        report.write(out.with_name(out.name + suffix), text)
    if messages := [*suggestions, *trials, *driver_calls.render(counts)]:
        print(*messages, sep="\n", file=sys.stderr)
    print(f"{title} {exit_text}; see {out}.html", file=sys.stderr)
    if any(trial.reason.endswith(advice.INTERRUPTED) for trial in trials):
        return INTERRUPTED
    return done.returncode


def add_lines(profile: profiles.Profile, lines: Mapping[str, str]) -> profiles.Profile:
    """Return a profile with a note for each node: the line of the program that made the node.

    Args:
        profile: the profile of a function or scan.
        lines: the program's lines, by the node's index.
    """
    if "Apply" not in profile.tables:
        return profile
    table = profile.tables["Apply"]
    rows = tuple(
        replace(row, notes=(*row.notes, lines[str(row.nodes)])) if str(row.nodes) in lines else row
        for row in table.rows
    )
    return replace(profile, tables={**profile.tables, "Apply": replace(table, rows=rows)})


def run_read(options: argparse.Namespace) -> int:
    """Print the numbers and tables of profiles, and with --html write a page."""
    parsed = [profile for file in options.file for profile in read(file)]
    if options.html:
        report.write(options.html, pages.render_profiles(options.file[0].name, parsed))
    if options.json:
        print(json.dumps([profile.to_json() for profile in parsed], indent=2))
        return 0
    for profile in parsed:
        print(profile.name)
        for name, value in profile.numbers.items():
            print(f"  {name:<14}{pages.format_number(name, value):>14}")
        print("\n".join(profiles.render(profile, rows=20)))
    return 0


def run_compare(options: argparse.Namespace) -> int:
    """Print a comparison of profiles, and with --html write a page."""
    names = profile_comparison.make_labels(options.file)
    comparisons = profile_comparison.compare([read(file) for file in options.file])
    if options.html:
        report.write(options.html, pages.render_comparison(comparisons, names))
    if options.json:
        print(report.to_json(dict(profile_comparison.to_json(comparisons, names))), end="")
    else:
        tables = (profile_comparison.make_table(comparison, names) for comparison in comparisons)
        print("\n\n".join(map("\n".join, tables)))
    return 0
