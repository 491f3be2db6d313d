"""Command theano-fast of the stacks of 2017: verify or describe the environment."""

from __future__ import print_function

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from theano_fast import __version__, libraries

# The checks need these settings. They override the user's settings, because the user's settings are not
# part of the environment.
FLAGS = "device=cpu,floatX=float64,mode=FAST_RUN,profile=False,compute_test_value=off"
# (name, time limit in seconds). theano_fast.checks contains the functions.
CHECKS = (
    ("packages", 300),
    ("compiler", 300),
    ("blas", 600),
    ("numerics", 600),
    ("libm", 900),
    ("scan", 3600),
    ("hermetic", 300),
)
# The time limit of a check with --full, in seconds.
FULL = 4 * 3600
# The number of lines from the end of a crashed check's output that a report contains.
LAST_LINES = 15
FAILED, NO_STACK = 1, 3
WARNING = "Python 2.7 has had no security fixes since 2020: do not process data from untrusted sources"


def main(arguments=None):
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="theano-fast", description=__doc__)
    # argparse's action "version" writes to stderr in Python 2.
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    if "--version" in (sys.argv[1:] if arguments is None else arguments):
        print("theano-fast " + __version__)
        return 0
    commands = parser.add_subparsers(metavar="COMMAND")
    check = commands.add_parser("verify", help="run the checks of this environment")
    check.add_argument("--json", metavar="FILE", help="write the report to FILE")
    check.add_argument("--full", action="store_true", help="also train a full-size model, for an hour")
    names = [name for name, _ in CHECKS]
    check.add_argument("--check", nargs="+", choices=names, default=names, help="run only these")
    check.set_defaults(run=verify)
    commands.add_parser("info", help="show the stack and its settings").set_defaults(run=info)
    options = parser.parse_args(arguments)
    try:
        stack = libraries.stack()
    except EnvironmentError as error:
        print("theano-fast: this environment contains no stack: %s" % error, file=sys.stderr)
        return NO_STACK
    return options.run(stack, options)


def info(stack, options):
    """Print the stack, its axes and Theano's settings; return the exit status."""
    for key in sorted(stack):
        print("%s: %s" % (key, stack[key]))
    program = (
        "import operator, theano\n"
        "for name in 'blas.ldflags compiledir cxx device floatX lib.amdlibm mode'.split():\n"
        "    print('%s: %s' % (name, operator.attrgetter(name)(theano.config)))\n"
    )
    status = subprocess.call([sys.executable, "-c", program])
    print(WARNING)
    return status


def verify(stack, options):
    """Run the checks, print their results, and write the report; return the exit status."""
    records = []
    folder = tempfile.mkdtemp(prefix="theano-fast-")
    try:
        print("%-12s%-10s%7s result" % ("check", "status", "seconds"))
        for name, limit in [row for row in CHECKS if row[0] in options.check]:
            records.append(run(name, FULL if options.full else limit, options.full, folder))
            print("%(name)-12s%(status)-10s%(seconds)6.1f  %(message)s" % records[-1])
            print("".join("    %s\n" % line for line in records[-1]["details"]), end="")
            sys.stdout.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counts = {
        status: sum(record["status"] == status for record in records)
        for status in ("passed", "failed", "skipped")
    }
    verified = not counts["failed"]
    verdict = "verified" if verified else "NOT verified"
    summary = "%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts
    print(WARNING)
    print("%s: %s (%s)" % (stack["stack"], verdict, summary))
    if options.json:
        document = {
            "schema_version": 1,
            "theano_fast": __version__,
            "stack": stack["stack"],
            "axes": {key: value for key, value in stack.items() if key != "stack"},
            "full": options.full,
            "verified": verified,
            "checks": records,
            "counts": counts,
        }
        with open(options.json, "w") as file:
            file.write(json.dumps(document, indent=2, sort_keys=True) + "\n")
    return 0 if verified else FAILED


def run(name, limit, full, folder):
    """Run a check in a separate process, and return its record. A crash or a timeout is a failure."""
    answer, log = os.path.join(folder, "answer.json"), os.path.join(folder, "log")
    flags = [os.environ.get("THEANO_FLAGS"), FLAGS, "compiledir=" + os.path.join(folder, "modules")]
    environment = dict(os.environ, THEANO_FLAGS=",".join(filter(None, flags)))
    command = [sys.executable, "-m", "theano_fast.checks", name, answer]
    started = time.time()
    with open(log, "w") as output:
        process = subprocess.Popen(
            command + (["--full"] if full else []),
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while process.poll() is None and time.time() - started < limit:
            time.sleep(0.05)
        if process.poll() is None:
            process.kill()
            process.wait()
    seconds, details = time.time() - started, []
    if process.returncode == 0:
        with open(answer) as file:
            summary, failures = json.load(file)
    else:
        summary, failures = "", ["the process of the check ended with status %d" % process.returncode]
        with open(log) as file:
            details = file.read().splitlines()[-LAST_LINES:]
    return {
        "name": name,
        "status": "failed" if failures else "passed",
        "seconds": seconds,
        "message": "; ".join(failures) or summary,
        "details": details,
    }
