"""A pytest plugin for Theano's own tests: nose's ways, and what happened as lines of JSON.

It runs in the interpreter that is judged, which may be a CPython 3.9 with stock Theano, and needs
pytest 8 or newer. One process runs one file; its events go to a file that outlives a crash:

    {"collected": [id, ...]}                    every test of the file
    {"started": id}
    {"id": id, "outcome": "passed" | "failed" | "skipped", "seconds": s, "reason": text}

Seconds are CPU seconds, with those of the compilers that a test starts.

Tests that have an outcome in that file already are not run again.
"""

import functools
import inspect
import json
import os
import signal
import sys
import threading
import types
import unittest
from pathlib import Path

import numpy.testing
import pytest

# The pipe to the caller; pytest puts something else in its place later.
CALLER = os.dup(0)


def pytest_addoption(parser):
    """--events FILE, and --part FIRST:STEP, the tests to run as a slice of those collected."""
    parser.addoption("--events", type=Path, required=True)
    parser.addoption("--part", default="0:1")


def pytest_configure(config):
    """Supply what is gone, and record from here on."""
    _supply_nose()
    _supply_decorators()
    threading.Thread(target=_end_with_caller, daemon=True).start()
    config.pluginmanager.register(Recorder(config.option.events, config.option.part))


def _end_with_caller():
    """Kill this process group when the caller is gone, however it went."""
    os.read(CALLER, 1)
    os.killpg(0, signal.SIGKILL)


def _supply_nose():
    """The names that Theano's tests import from nose, which is not developed since 2015."""
    case = unittest.TestCase()

    def raises(*exceptions):
        def decorate(test):
            @functools.wraps(test)
            def wrapper(*arguments):
                with case.assertRaises(exceptions):
                    test(*arguments)

            return wrapper

        return decorate

    tools = {
        "assert_equal": case.assertEqual,
        "assert_equals": case.assertEqual,
        "assert_raises": case.assertRaises,
        "assert_true": case.assertTrue,
        "raises": raises,
    }
    attrib = {"attr": lambda *_, **__: lambda test: test}
    for name, names in {
        "nose": {},
        "nose.tools": tools,
        "nose.plugins": {},
        "nose.plugins.attrib": attrib,
        "nose.plugins.skip": {"SkipTest": unittest.SkipTest},
    }.items():
        module = types.ModuleType(name)
        vars(module).update(names)
        sys.modules[name] = module


def _supply_decorators():
    """numpy.testing.dec, gone in NumPy 1.25: all that Theano's tests use of it."""

    def skipif(condition, reason):
        return unittest.skipIf(condition() if callable(condition) else condition, reason)

    numpy.testing.dec = types.SimpleNamespace(
        skipif=skipif,
        slow=lambda test: test,
        knownfailureif=lambda known, _reason: unittest.expectedFailure if known else lambda t: t,
    )


class Case(pytest.Item):
    """One case of a yield test, run on the instance that its generator ran on, as nose did."""

    def __init__(self, check, instance, **kwargs):
        super().__init__(**kwargs)
        self.check = check
        self.instance = instance

    def setup(self):
        """Run a test class' setUp, which pytest leaves to unittest."""
        getattr(self.instance, "setUp", lambda: None)()

    def runtest(self):
        """Run the case."""
        self.check()


def pytest_pycollect_makeitem(collector, name, obj):
    """Collect the cases of a yield test, which pytest dropped."""
    if not (name.startswith("test") and inspect.isgeneratorfunction(obj)):
        return None
    return [
        Case.from_parent(collector, name=f"{name}[{number}]", check=check, instance=instance)
        for number, (check, instance) in enumerate(_cases(collector, name))
    ]


def _cases(collector, name):
    """The cases that a generator yields; what it raises becomes the last one."""
    instance = None
    try:
        if isinstance(collector, pytest.Class):
            getattr(collector.obj, "setup_class", lambda: None)()
            instance = collector.obj()
            getattr(instance, "setUp", lambda: None)()
        generate = getattr(collector.obj if instance is None else instance, name)
        for case in generate():
            check, *arguments = case if isinstance(case, tuple) else (case,)
            yield functools.partial(check, *arguments), instance
    except Exception as error:
        yield functools.partial(_raise, error), None


def _raise(error):
    raise error


class Recorder:
    """Writes the events, each at once."""

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
        """A file that cannot be imported, or skips itself, is one test of that name."""
        if not report.passed:
            self.write(collected=[report.nodeid])
            self.write(id=report.nodeid, outcome=report.outcome, seconds=0, reason=_reason(report))

    def pytest_collection_modifyitems(self, items):
        """Keep the part asked for, less what has an outcome."""
        self.write(collected=[item.nodeid for item in items])
        lines = self.events.read_text(encoding="utf-8").splitlines()
        done = {event["id"] for event in map(json.loads, lines) if "id" in event}
        items[:] = [item for item in items[self.part] if item.nodeid not in done]

    def pytest_runtest_logstart(self, nodeid):
        """A test begins."""
        self.write(started=nodeid)
        self.reports = []
        self.began = _cpu_seconds()

    def pytest_runtest_logreport(self, report):
        """A test's setup, call or teardown ended."""
        self.reports.append(report)

    def pytest_runtest_logfinish(self, nodeid):
        """A test ended: it failed or was skipped where one of its phases did."""
        worst = min(self.reports, key=lambda report: ORDER.index(report.outcome))
        self.write(
            id=nodeid,
            outcome=worst.outcome,
            seconds=round(_cpu_seconds() - self.began, 2),
            reason=_reason(worst),
        )


def _cpu_seconds():
    return sum(os.times()[:4])


ORDER = ("failed", "skipped", "passed")


def _reason(report):
    """Why a test failed or was skipped, in one line."""
    if report.passed:
        return ""
    if hasattr(report, "wasxfail"):
        return f"expected to fail, says the test {report.wasxfail}".strip()
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr).strip().splitlines()[-1]
    return text.splitlines()[0][:300]
