"""``theano-fast profile``: read Theano's printed profiles, and compare them."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from theano_fast import profiles, report
from theano_fast.profiling import comparing, pages


def main(arguments: Sequence[str]) -> int:
    """Run what follows ``theano-fast profile`` and return its exit status.

    Raises:
        profiles.ProfileError: a file is no profile, or cut.
        comparing.ComparisonError: files have nothing in common.
    """
    given = make_parser().parse_args(arguments)
    return int(given.run(given))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of what follows ``theano-fast profile``."""
    parser = argparse.ArgumentParser(prog="theano-fast profile", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reading = commands.add_parser("read", help="read what profile=True printed, of any version")
    reading.add_argument("file", nargs="+", type=Path)
    reading.set_defaults(run=run_read)
    sides = commands.add_parser("compare", help="hold profiles of one program against each other")
    sides.add_argument("file", nargs="+", type=Path, help="two or more; ratios are to the first")
    sides.set_defaults(run=run_compare)
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
        print("\n".join(f"  {name:<14}{value:14g}" for name, value in each.numbers.items()))
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
