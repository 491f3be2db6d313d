"""Run Theano's tests, and small test files, with the Python of the openblas environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import ConformanceFailed
from builder.proof import conformance, expected_failures, linked_packages, pytest_events
from builder.proof.expected_failures import Failure
from builder.proof.pytest_events import Part
from builder.proof.pytest_results import Outcome
from builder.proof.pytest_runs import Interpreter, Run

FILE = "theano/tests/test_some.py"
PART = Part("c", "", FILE, 0, 1)
# This file is written for nose, like Theano's tests. pytest does not collect nose's tests that
# yield.
TESTS = """
import os
import unittest
from nose.plugins.attrib import attr
from nose.plugins.skip import SkipTest
from nose.tools import raises
from numpy.testing import dec
from parameterized import parameterized


class T_cases(object):
    def setUp(self):
        self.numbers = [1, 2]

    def check(self, number, other):
        assert number == other

    def test_numbers(self):
        for number in self.numbers:
            yield self.check, number, 1
        raise SkipTest("no more")


class SomeTester(unittest.TestCase):
    @parameterized.expand([(1,), (2,)])
    def test_one(self, number):
        assert number == 1


def test_lambdas():
    yield lambda: None


@attr("slow")
@raises(ValueError)
def test_raises():
    raise ValueError


@dec.skipif(True, "never")
def test_skipped():
    raise ValueError


def test_crash():
    os._exit(3)


def test_after():
    pass
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a directory that contains FILE, instead of a site-packages with Theano's tests."""
    file = tmp_path / "site" / FILE
    file.parent.mkdir(parents=True)
    file.write_text(TESTS)
    return tmp_path / "site"


@pytest.fixture
def interpreter(prefix: Path, site: Path, tmp_path: Path) -> Interpreter:
    """Return the environment's Python, with links to the builder's pytest on its path."""
    links = tmp_path / "links"
    links.mkdir()
    linked_packages.link_packages(links, *linked_packages.PYTEST)
    return Interpreter(prefix / "bin" / "python", site, (links,))


def test_tests_written_for_nose_run(interpreter: Interpreter, tmp_path: Path) -> None:
    """Each test of TESTS has the expected outcome; tests after a crash run in a new process."""
    Run(interpreter, tmp_path, os.environ, 1).run([PART])
    results = pytest_events.collect_results(tmp_path, [PART])
    outcomes = {
        test.partition("::")[2]: (outcome.outcome, outcome.reason.partition(":")[0])
        for (_, test), outcome in results.outcomes.items()
    }
    assert outcomes == {
        "T_cases::test_numbers[0]": ("passed", ""),
        "T_cases::test_numbers[1]": ("failed", "AssertionError"),
        "T_cases::test_numbers[2]": ("skipped", "Skipped"),
        "SomeTester::test_one_0": ("passed", ""),
        "SomeTester::test_one_1": ("failed", "AssertionError"),
        "test_lambdas[0]": ("passed", ""),
        "test_raises": ("passed", ""),
        "test_skipped": ("skipped", "Skipped"),
        "test_crash": ("failed", "its process ended with 3"),
        "test_after": ("passed", ""),
    }
    assert set(results.collected["c", FILE]) == {test for _, test in results.outcomes}


# Run one test file in a process that the test can kill.
INTERRUPTED = """
import os, sys
from pathlib import Path
from builder.proof.pytest_events import Part
from builder.proof.pytest_runs import Interpreter, Run
python, site, links, directory, file = sys.argv[1:]
interpreter = Interpreter(Path(python), Path(site), (Path(links),))
Run(interpreter, Path(directory), os.environ, 1).run([Part("c", "", file, 0, 1)])
"""


def test_a_killed_run_is_resumed(interpreter: Interpreter, site: Path, tmp_path: Path) -> None:
    """After SIGKILL during the second test, the next run repeats only the second test."""
    (site / FILE).write_text(
        f"import os, time\nfrom pathlib import Path\nPID = Path({str(tmp_path / 'pid')!r})\n"
        f"RAN = Path({str(tmp_path / 'ran')!r})\n"
        "def test_first():\n    RAN.open('a').write('first ')\n"
        "def test_second():\n"
        "    RAN.open('a').write('second ')\n"
        "    if not PID.exists():\n"
        "        PID.write_text(str(os.getpid()))\n"
        "        time.sleep(600)\n"
    )
    arguments = [interpreter.python, site, *interpreter.path, tmp_path, FILE]
    runner = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *map(str, arguments)], cwd=paths.ROOT
    )
    _wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    # After the runner is killed, the process that runs the tests ends too.
    process = Path("/proc", (tmp_path / "pid").read_text())
    _wait_for(lambda: not process.exists() or "\nState:\tZ" in (process / "status").read_text())
    Run(interpreter, tmp_path, os.environ, 1).run([PART])
    assert (tmp_path / "ran").read_text() == "first second second "
    assert {o.outcome for o in pytest_events.read_events(tmp_path, PART).outcomes.values()} == {
        "passed"
    }


def _wait_for(condition: Callable[[], bool]) -> None:
    """Wait at most 120 s until a condition is true."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


# A conformance.toml that runs two of Theano's test files: one with a C compiler, one without.
SMALL_TABLE = """quick_seconds = 8
seconds = {}
failures = [FAILURES]
[configurations]
c = { device = "cpu", flags = "", files = ["theano/tests/test_record.py"] }
python = { device = "cpu", flags = "cxx=", files = ["theano/tests/test_updates.py"] }
"""


def _use_small_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failures: str) -> None:
    """Make the builder read SMALL_TABLE with these expected failures, as TOML tables."""
    table = tmp_path / "conformance.toml"
    table.write_text(SMALL_TABLE.replace("FAILURES", failures))
    monkeypatch.setattr(paths, "CONFORMANCE", table)
    for name in ("TEST_RUNS", "REPORTS"):
        monkeypatch.setattr(paths, name, tmp_path / name)


@pytest.mark.thorough
def test_theanos_tests_run_in_the_stack(
    prefix: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _use_small_table(monkeypatch, tmp_path, "")
    quick = conformance.make_selection("quick", "1/1")
    conformance.check_stack("openblas", quick, 2)
    assert "openblas: 7 passed, 0 failed, 0 expected failures, 0 skipped, 0 not run" in (
        capsys.readouterr().out
    )
    # A test that passes, but is listed as an expected failure, fails the run.
    test = "theano/tests/test_record.py::test_record_good"
    _use_small_table(
        monkeypatch,
        tmp_path,
        f'{{ tests = ["{test}"], configurations = ["c"], reason = "r", evidence = "e", '
        "stock = false }",
    )
    with pytest.raises(ConformanceFailed, match=f"c: {test}: passed, but is listed as failing: r"):
        conformance.check_stack("openblas", quick, 2)


def test_an_unlisted_failure_is_a_deviation(interpreter: Interpreter, tmp_path: Path) -> None:
    """Two of three failures are expected; the third failure is reported with its reason."""
    Run(interpreter, tmp_path, os.environ, 1).run([PART])
    results = pytest_events.collect_results(tmp_path, [PART])
    failed = [f"{FILE}::{name}" for name in ("T_cases::test_numbers[1]", "test_crash")]
    failure = Failure(tuple(failed), ("c",), "r", "e", stock=False)
    [complaint] = expected_failures.find_deviations(
        [failure], results, {("c", FILE): Outcome("failed", 0, "")}
    )
    assert complaint.startswith(f"c: {FILE}::SomeTester::test_one_1: failed: AssertionError")
