"""``theano-fast profile``: run a program with Theano's profiler, read what it printed, compare."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from theano_fast import profiles, report, verify
from theano_fast.profiling import advice, comparing, frames, pages

# All ops and nodes, and names as long as they are.
FLAGS = (
    "profile=True,profiling.n_ops=10000,profiling.n_apply=10000,profiling.output_line_width=9999"
    # Gradients and scans are made deep inside Theano.
    ",traceback.limit=60"
)

# Exit status, as a shell's.
INTERRUPTED = 130
EXAMPLES = """examples:
  theano-fast profile train.py 10                # train-profile.html, .json, .speedscope.json
  theano-fast profile run --advise train.py 10   # also what would be faster, measured
  theano-fast profile read OLD.txt --html old.html
  theano-fast profile compare OLD.txt NEW.txt --html both.html
"""


def main(arguments: Sequence[str]) -> int:
    """Run what follows ``theano-fast profile`` and return its exit status.

    Raises:
        profiles.ProfileError: a file is no profile, or cut.
        comparing.ComparisonError: files have nothing in common.
    """
    # A program may have any name but a command's.
    known = ("run", "read", "compare", "-h", "--help")
    words = list(arguments) if not arguments or arguments[0] in known else ["run", *arguments]
    given = make_parser().parse_args(words)
    return int(given.run(given))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of what follows ``theano-fast profile``."""
    parser = argparse.ArgumentParser(
        prog="theano-fast profile",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reading = commands.add_parser("read", help="read what profile=True printed, of any version")
    reading.add_argument("file", nargs="+", type=Path)
    reading.set_defaults(run=run_read)
    sides = commands.add_parser("compare", help="hold profiles of one program against each other")
    sides.add_argument("file", nargs="+", type=Path, help="two or more; ratios are to the first")
    sides.set_defaults(run=run_compare)
    running = commands.add_parser("run", help="run a program, and write pages of its profile")
    running.add_argument(
        "--out",
        type=Path,
        metavar="NAME",
        help="write NAME.html and so on",
    )
    running.add_argument(
        "--advise",
        action="store_true",
        help="run it again with each remedy, as float32 or other threads, and tell how fast it is",
    )
    running.add_argument("program", type=Path)
    running.add_argument("arguments", nargs=argparse.REMAINDER)
    running.set_defaults(run=run_program)
    for each in (reading, sides):
        each.add_argument("--html", type=Path, metavar="FILE", help="write a page with pictures")
        each.add_argument("--json", action="store_true", help="as JSON")
    return parser


def read(file: Path) -> tuple[profiles.Profile, ...]:
    """Read the profiles in a file; raises profiles.ProfileError, which names the file."""
    try:
        return profiles.parse(file.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise profiles.ProfileError(f"{file} cannot be read: {error.strerror}") from error
    except profiles.ProfileError as error:
        raise profiles.ProfileError(f"{file}, {error}") from error


def run_program(given: argparse.Namespace) -> int:
    """Run a program, unchanged, write its page, JSON and speedscope file, return its status."""
    out = given.out or Path(f"{given.program.stem}-profile")
    # Before the program runs: what cannot be tried must not lose its profile.
    remedies = list(advice.remedies(len(os.sched_getaffinity(0)))) if given.advise else []
    with tempfile.TemporaryDirectory(prefix="theano-fast-profile-") as folder:
        file, traces = Path(folder, "profile.txt"), Path(folder, "traces.json")
        flags = verify.theano_flags(FLAGS, f"profiling.destination={file}")
        started = (traces, given.program, *given.arguments)
        done = subprocess.run(
            [sys.executable, "-m", "theano_fast.profiling.traced", *map(str, started)],
            # Without it, Theano refuses to profile on a GPU, whose operations it does not wait for.
            env={"CUDA_LAUNCH_BLOCKING": "1", **os.environ, "THEANO_FLAGS": flags},
            check=False,
        )
        if not file.exists():
            raise profiles.ProfileError(
                f"{given.program} {verify.ending(done.returncode)}, and calls nothing of Theano's"
            )
        lines = json.loads(traces.read_text()) if traces.exists() else {}
        found = [traced(each, lines.get(each.name, {})) for each in read(file)]
    title = given.program.name
    told = list(advice.of_profiles(found))
    tries: tuple[advice.Tried, ...] = ()
    if given.advise:
        # What was measured until then is kept where a scheduler's limit of time ends it, too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        print(f"{title}: {len(remedies) + 2} more runs for advice", file=sys.stderr)
        tries = advice.measure(tuple(map(str, (given.program, *given.arguments))), remedies)
    written = {
        ".html": pages.of_read(title, found, pages.of_advice(told, tries)),
        ".json": report.to_json(
            {
                "profiles": [asdict(each) for each in found],
                "advice": {"told": told, "tried": [asdict(each) for each in tries]},
            }
        ),
        ".speedscope.json": report.to_json(frames.speedscope(frames.of_profiles(title, found))),
    }
    for ending, text in written.items():
        report.write(out.with_name(out.name + ending), text)
    print(*told, *tries, sep="\n", end="\n" if told or tries else "", file=sys.stderr)
    print(f"{title} {verify.ending(done.returncode)}; see {out}.html", file=sys.stderr)
    if any(each.told.endswith(advice.INTERRUPTED) for each in tries):
        return INTERRUPTED
    return done.returncode


def traced(profile: profiles.Profile, lines: Mapping[str, str]) -> profiles.Profile:
    """Return a profile whose nodes have the lines of the program that made them, by number."""
    if "Apply" not in profile.tables:
        return profile
    table = profile.tables["Apply"]
    rows = tuple(
        replace(row, notes=(*row.notes, lines[str(row.nodes)])) if str(row.nodes) in lines else row
        for row in table.rows
    )
    return replace(profile, tables={**profile.tables, "Apply": replace(table, rows=rows)})


def run_read(given: argparse.Namespace) -> int:
    """Print the tables of profiles, and write their page."""
    found = [each for file in given.file for each in read(file)]
    if given.html:
        report.write(given.html, pages.of_read(given.file[0].name, found))
    if given.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
        return 0
    for each in found:
        print(f"{each.name}")
        print("\n".join(f"  {name:<14}{value:14.15g}" for name, value in each.numbers.items()))
        print("\n".join(profiles.render(each, rows=20)))
    return 0


def run_compare(given: argparse.Namespace) -> int:
    """Print profiles side by side, and write their page."""
    names = comparing.labels(given.file)
    compared = comparing.compare([read(file) for file in given.file])
    if given.html:
        report.write(given.html, pages.of_compared(compared, names))
    if given.json:
        print(report.to_json(dict(comparing.as_json(compared, names))), end="")
    else:
        print("\n\n".join("\n".join(comparing.table(each, names)) for each in compared))
    return 0
