"""Run one file of Theano 0.8.2's tests with nose; record the same events as theano_events.py.

    nose_events.py DIRECTORY FILE --events EVENTS --part FIRST:STEP

runs the tests [FIRST::STEP] of FILE in DIRECTORY with Python 2.7, and appends the events to the
file EVENTS. nose collects the tests of a generator only when it runs them, so the list of all tests
is the last event. The id of a test has pytest's form, such as FILE::CLASS::METHOD.
"""

import inspect
import io
import json
import os
import signal
import sys
import threading
import traceback
from collections import Counter

import nose
from nose.case import FunctionTestCase, MethodTestCase
from nose.failure import Failure
from nose.plugins.base import Plugin

# The descriptor of the pipe to the caller.
CALLER_PIPE = os.dup(0)
# The exceptions of NumPy's decorators for skipped tests and known failures.
SKIPPED = ("SkipTest", "KnownFailureException")
ORDER = ("failed", "skipped", "passed")


class Events(Plugin):
    """A nose plugin that writes each event to a file immediately."""

    name = "events"
    # A higher score makes nose report skipped tests to this plugin first.
    score = 10000

    def options(self, parser, env):
        parser.add_option("--events")
        parser.add_option("--part", default="0:1")

    def configure(self, options, conf):
        self.enabled = True
        self.file = options.events
        self.first, self.step = map(int, options.part.split(":"))
        with open(self.file) as stream:
            events = [json.loads(line) for line in stream]
        self.done = set(event["id"] for event in events if "id" in event)
        self.collected, self.counts = [], Counter()
        self.current, self.worst = None, ("passed", "")

    def write(self, **event):
        with io.open(self.file, "ab") as stream:
            stream.write(json.dumps(event).encode() + b"\n")

    def prepareTestCase(self, test):
        """Skip a test that is not selected, or that has an outcome already."""
        number = len(self.collected)
        name = self.identify(test.test)
        self.collected.append(name)
        if number % self.step != self.first or name in self.done:
            return lambda result: None
        self.current, self.worst, self.began = name, ("passed", ""), measure_cpu_seconds()
        self.write(started=name)
        return None

    def identify(self, case):
        """Return the unique name of a test within the file."""
        if isinstance(case, Failure):
            call = (case.address() or (None, None, None))[2]
            parts = call.split(".") if call else []
        elif isinstance(case, (FunctionTestCase, MethodTestCase)):
            function, _ = case._descriptors()
            owner = [case.cls.__name__] if isinstance(case, MethodTestCase) else []
            parts = owner + [function.__name__]
        else:
            function = getattr(case, case._testMethodName)
            parts = [type(case).__name__, case._testMethodName]
        name = "::".join([FILE] + parts)
        self.counts[name] += 1
        if not isinstance(case, Failure) and inspect.isgeneratorfunction(function):
            return "%s[%d]" % (name, self.counts[name] - 1)
        return name if self.counts[name] == 1 else "%s#%d" % (name, self.counts[name])

    def addFailure(self, test, err):
        self.record_phase("failed", err)

    def addError(self, test, err):
        self.record_phase("skipped" if err[0].__name__ in SKIPPED else "failed", err)

    def record_phase(self, outcome, err):
        """Record a failed or skipped phase of a test, or of the setup of a class or file."""
        lines = traceback.format_exception_only(*err[:2])[-1].strip().splitlines()
        reason = "".join(lines[:1])[:300].decode("utf-8", "replace")
        if self.current is None:
            self.write(id=FILE, outcome=outcome, seconds=0, reason=reason)
        else:
            self.worst = min(self.worst, (outcome, reason), key=lambda pair: ORDER.index(pair[0]))

    def afterTest(self, test):
        if self.current is not None:
            outcome, reason = self.worst
            spent = round(measure_cpu_seconds() - self.began, 2)
            self.write(id=self.current, outcome=outcome, seconds=spent, reason=reason)
            self.current = None

    def finalize(self, result):
        self.write(collected=self.collected)


def measure_cpu_seconds():
    """Return the CPU seconds of this process and of the compilers that a test started."""
    return sum(os.times()[:4])


def end_with_caller():
    """Kill this process group when the caller ends for any reason."""
    os.read(CALLER_PIPE, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    SITE, FILE = sys.argv[1:3]
    caller = threading.Thread(target=end_with_caller)
    caller.daemon = True
    caller.start()
    options = ["--exe", "--nocapture", "--nologcapture"]
    arguments = [sys.argv[0], os.path.join(SITE, FILE)] + sys.argv[3:] + options
    nose.main(argv=arguments, addplugins=[Events()])
