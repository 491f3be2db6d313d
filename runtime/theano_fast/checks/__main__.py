"""Run one check: ``-m theano_fast.checks NAME FILE`` writes the record of check NAME to FILE."""

import argparse
import dataclasses
import importlib
import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from theano_fast import stack
from theano_fast.checks import CHECKS
from theano_fast.checks.result import Options, Record, Result, record


def main() -> None:
    """Run the check that the command line names, and write its record as JSON."""
    parser = argparse.ArgumentParser(prog="python -m theano_fast.checks", description=__doc__)
    parser.add_argument("name", choices=[check.name for check in CHECKS])
    parser.add_argument("file", type=Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--device", default=Options.device)
    arguments = parser.parse_args()
    options = Options(stack.load(), arguments.full, arguments.device)
    check_record = run(arguments.name, options)
    arguments.file.write_text(json.dumps(dataclasses.asdict(check_record)))


def run(name: str, options: Options) -> Record:
    """Run a check, and return its record; an exception becomes a failure with a stack trace."""
    started = time.perf_counter()
    trace = ""
    try:
        check: Callable[[Options], Result] = importlib.import_module(
            f"theano_fast.checks.{name}"
        ).run
        result = check(options)
    # Catch every exception, so that a bug in a check is reported as the check's failure.
    except Exception as error:
        result = Result(failures=(f"{type(error).__name__}: {error}".strip(),))
        trace = traceback.format_exc()
    return record(name, time.perf_counter() - started, result, trace)


if __name__ == "__main__":
    main()
