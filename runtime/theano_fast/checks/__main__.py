"""Run a check in this process, and write its record: ``-m theano_fast.checks NAME FILE``."""

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
    """Run the check named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m theano_fast.checks", description=__doc__)
    parser.add_argument("name", choices=[check.name for check in CHECKS])
    parser.add_argument("file", type=Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--device", default=Options.device)
    arguments = parser.parse_args()
    options = Options(stack.load(), arguments.full, arguments.device)
    done = run(arguments.name, options)
    arguments.file.write_text(json.dumps(dataclasses.asdict(done)))


def run(name: str, options: Options) -> Record:
    """Run a check; if it raises an exception, the check failed with the exception's message."""
    started = time.perf_counter()
    trace = ""
    try:
        check: Callable[[Options], Result] = importlib.import_module(
            f"theano_fast.checks.{name}"
        ).run
        result = check(options)
    # Catch every exception, so that a check with a bug has failed.
    except Exception as error:
        result = Result(failures=(f"{type(error).__name__}: {error}".strip(),))
        trace = traceback.format_exc()
    return record(name, time.perf_counter() - started, result, trace)


if __name__ == "__main__":
    main()
