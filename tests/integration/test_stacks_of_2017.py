"""Test `theano-fast verify` and the runner of nose tests on the stacks of 2017.

These stacks have an older Theano or Python than the other stacks. pytest skips a stack that is not
built.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from builder.common import paths
from builder.environment import envs
from builder.measure import benchmark_of_2017
from builder.proof import linked_packages, pytest_events
from builder.proof.pytest_events import Part
from builder.proof.pytest_runs import THEANO_OF_2017, Interpreter, Run
from builder.stack import stacks


@pytest.fixture(params=benchmark_of_2017.list_old_stacks())
def stack(request: pytest.FixtureRequest) -> str:
    """Return the name of a stack of 2017; skip the test if the stack is not built."""
    if envs.read_installed_digest(request.param) is None:
        pytest.skip(f"not built: ./invoke build --stack={request.param}")
    return str(request.param)


def verify(stack: str, tmp_path: Path, *checks: str, flags: str = "") -> dict[str, dict[str, str]]:
    """Run some checks with Theano's ``flags``; map the name of each check to its record."""
    report = tmp_path / "report.json"
    command = [paths.ENVIRONMENTS / stack / "bin" / "theano-fast", "verify", "--json", report]
    variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "THEANO_FLAGS": flags}
    done = subprocess.run([*command, "--check", *checks], env=variables, check=False)
    document = json.loads(report.read_text("utf-8"))
    assert document["verified"] == (done.returncode == 0)
    return {record["name"]: record for record in document["checks"]}


def test_products_call_the_blas_of_the_stack(stack: str, tmp_path: Path) -> None:
    """The check passes in the environment, and fails with the link flags of another BLAS."""
    assert verify(stack, tmp_path, "blas")["blas"]["status"] == "passed"
    library = paths.ENVIRONMENTS / stack / "lib" / "libblas.so.3"
    # A stack with NumPy's BLAS has no link flags, so add flags. For other stacks, remove the flags.
    ldflags = f"-L{library.parent} -l:{library.name}" if stacks.load(stack).blas == "numpy" else ""
    broken = verify(stack, tmp_path, "blas", flags=f"blas.ldflags={ldflags}")["blas"]
    assert broken["status"] == "failed"
    assert "blas.ldflags is" in broken["message"]


def test_a_missing_compiler_is_detected(stack: str, tmp_path: Path) -> None:
    broken = verify(stack, tmp_path, "compiler", flags="cxx=")["compiler"]
    assert broken["status"] == "failed"


def test_amdlibm_switched_off_is_detected(stack: str, tmp_path: Path) -> None:
    if stacks.load(stack).libm != "amdlibm":
        pytest.skip("the stack has no amdlibm to switch off")
    broken = verify(stack, tmp_path, "libm", flags="lib.amdlibm=False")["libm"]
    assert "amdlibm is not loaded" in broken["message"]


def test_file_names_of_glibc_match_no_other_library(stack: str) -> None:
    """The pattern GLIBC matches the file names of glibc before and since release 2.34."""
    glibcs = ["ld-2.28.so", "ld-linux-x86-64.so.2", "libc-2.31.so", "libc.so.6", "libm-2.31.so"]
    others = ["ldb.so", "libcrypto.so.3", "libmkl_rt.so", "libstdc++.so.6"]
    matching_names = f"[name for name in {glibcs + others} if GLIBC.match(name)]"
    program = f"from theano_fast.libraries import GLIBC; print({matching_names})"
    python = paths.ENVIRONMENTS / stack / "bin" / "python"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{glibcs}\n"


def test_the_last_line_is_the_verdict(stack: str) -> None:
    """`./invoke hosts` copies the last line of `theano-fast verify` into its table."""
    command = [paths.ENVIRONMENTS / stack / "bin" / "theano-fast", "verify", "--check", "packages"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].startswith(f"{stack}: verified (1 passed")


FILE = "theano/tests/test_some.py"
# These tests have the style of Theano 0.8.2's tests.
TESTS = """
import os
import unittest
from nose.plugins.skip import SkipTest
from nose_parameterized import parameterized
from numpy.testing import dec


class TestCases(object):
    def check(self, number, other):
        assert number == other

    def test_numbers(self):
        for number in 1, 2:
            yield self.check, number, 1
        raise SkipTest("no more")


class SomeTester(unittest.TestCase):
    @parameterized.expand([(1,), (2,)])
    def test_one(self, number):
        assert number == 1

    def tearDown(self):
        assert self._testMethodName != "test_one_0"


@dec.knownfailureif(True, "never")
def test_known():
    raise ValueError


def test_crash():
    os._exit(3)


def test_letters():
    raise ValueError("\\xff")
"""


def test_nose_runs_tests_of_theano_0_8(stack: str, tmp_path: Path) -> None:
    """Each test of TESTS has the expected outcome; tests after a crash run in a new process."""
    file = tmp_path / "site" / FILE
    file.parent.mkdir(parents=True)
    file.write_text(TESTS)
    packages = tmp_path / "packages"
    packages.mkdir()
    linked_packages.unpack_nose(packages)
    python = paths.ENVIRONMENTS / stack / "bin" / "python"
    interpreter = Interpreter(python, tmp_path / "site", (packages,))
    part = Part("c", "", FILE, 0, 1)
    Run(interpreter, tmp_path, os.environ, 1, THEANO_OF_2017).run([part])
    events = pytest_events.read_events(tmp_path, part)
    assert {
        test.partition("::")[2]: (outcome.outcome, outcome.reason)
        for test, outcome in events.outcomes.items()
    } == {
        "TestCases::test_numbers[0]": ("passed", ""),
        "TestCases::test_numbers[1]": ("failed", "AssertionError"),
        "TestCases::test_numbers#3": ("skipped", "SkipTest: no more"),
        "SomeTester::test_one_0": ("failed", "AssertionError"),
        "SomeTester::test_one_1": ("failed", "AssertionError"),
        "test_known": ("skipped", "KnownFailureException: never"),
        "test_crash": ("failed", "its process ended with 3"),
        "test_letters": ("failed", "ValueError: \ufffd"),
    }
    assert set(events.collected) == set(events.outcomes)
