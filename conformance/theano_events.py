"""Record the outcomes of tests as lines of JSON: a pytest plugin.

The plugin runs in the interpreter whose Theano is tested, which may be a CPython 3.9. One process
runs one test file. The plugin writes events to a file, so that the events survive a crash:

    {"collected": [id, ...]}                    all tests of the file
    {"started": id}
    {"id": id, "outcome": "passed" | "failed" | "skipped", "seconds": s, "reason": text}

"seconds" is CPU time, including the compilers that a test starts. The id of a file that cannot be
imported, or that skips itself, is the file's path. The plugin does not repeat tests that already
have an outcome in the file of events.
"""

import json
import os
import signal
import threading
from pathlib import Path

import pytest

# The descriptor of the pipe to the caller, copied before pytest replaces standard input.
CALLER_PIPE = os.dup(0)


def pytest_addoption(parser):
    """Add --events FILE, and --part FIRST:STEP: run the collected tests [FIRST::STEP]."""
    parser.addoption("--events", type=Path, required=True)
    parser.addoption("--part", default="0:1")


def pytest_configure(config):
    """Start the recorder."""
    threading.Thread(target=_end_with_caller, daemon=True).start()
    config.pluginmanager.register(Recorder(config.option.events, config.option.part))


def _end_with_caller():
    """Kill this process group when the caller ends for any reason."""
    os.read(CALLER_PIPE, 1)
    os.killpg(0, signal.SIGKILL)


class Recorder:
    """Recorder that writes each event immediately."""

    def __init__(self, events, part):
        self.events = events
        first, step = map(int, part.split(":"))
        self.part = slice(first, None, step)
        self.reports = []
        self.began = 0.0

    def write(self, **event):
        """Append one event."""
        with self.events.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(event) + "\n")

    def pytest_collectreport(self, report):
        """Record a file that could not be imported, or that skips itself."""
        if not report.passed:
            self.write(
                id=report.nodeid, outcome=report.outcome, seconds=0, reason=_find_reason(report)
            )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Keep only tests of the requested part that have no outcome yet."""
        self.write(collected=[item.nodeid for item in items])
        lines = self.events.read_text(encoding="utf-8").splitlines()
        done = {event["id"] for event in map(json.loads, lines) if "id" in event}
        items[:] = [item for item in items[self.part] if item.nodeid not in done]

    def pytest_runtest_logstart(self, nodeid):
        """Record the start of a test."""
        self.write(started=nodeid)
        self.reports = []
        self.began = _measure_cpu_seconds()

    def pytest_runtest_logreport(self, report):
        """Record the end of a test's setup, call or teardown."""
        self.reports.append(report)

    def pytest_runtest_logfinish(self, nodeid):
        """Record the end of a test, with the worst outcome of its setup, call and teardown."""
        worst = min(self.reports, key=lambda report: ORDER.index(report.outcome))
        self.write(
            id=nodeid,
            outcome=worst.outcome,
            seconds=round(_measure_cpu_seconds() - self.began, 2),
            reason=_find_reason(worst),
        )


def _measure_cpu_seconds():
    return sum(os.times()[:4])


ORDER = ("failed", "skipped", "passed")


def _find_reason(report):
    """Return the reason why a test failed or was skipped, in one line."""
    if report.passed:
        return ""
    if hasattr(report, "wasxfail"):
        return f"expected failure: {report.wasxfail}".strip()
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr).strip().splitlines()[-1]
    return text.splitlines()[0][:300]
