"""Run `./invoke test` in a copy of the project with five small tests, and check its output."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import Project

from builder.common import paths

TESTS = """
import warnings

import pytest

def test_passes():
    warnings.warn("mind this")

def test_fails():
    assert {"a": [1, 2]} == {"a": [1, 3]}

@pytest.mark.parametrize("number", [1, 2])
def test_skips(number):
    pytest.skip("no daemon")

@pytest.fixture
def teardown(tmp_path_factory):
    yield
    open("ended", "w").close()

def test_waits(teardown):
    import time
    open("began", "w").close()
    time.sleep(600)
"""


@pytest.fixture
def small_project(tmp_path: Path) -> Project:
    """Return a copy of the project whose unit tests are TESTS and a file that skips itself."""
    root = tmp_path / "a project"
    project = Project(
        root,
        ("builder", "conformance/theano_events.py", "requirements.txt", "tasks.py"),
        root / "cache",
    )
    (root / "tests" / "unit").mkdir(parents=True)
    (root / "tests" / "unit" / "test_a.py").write_text(TESTS)
    (root / "tests" / "unit" / "test_b.py").write_text("import pytest\npytest.importorskip('nope')")
    return project


def test_without_a_terminal_the_output_is_plain_lines(small_project: Project) -> None:
    """The output has the failures, the warnings, the reasons of skips, and a command for pytest."""
    status, output = small_project.invoke("test", "--unit", "--select=not waits")
    assert status == 12
    plan, _, results = output.partition("in all, on 2 cores\n")
    assert re.search(r"^tests/unit +at most 20 s", plan, re.MULTILINE)
    assert "= FAILURES =" in results
    assert "Full diff:" in results
    assert "UserWarning: mind this" in results
    assert "\n2 skipped: no daemon\n1 skipped: could not import 'nope': No module named" in results
    assert results.endswith("\n1 passed, 1 failed, 3 skipped\nerror: failed: tests/unit (1)\n")
    assert re.sub(r"[\n\x20-\x7e]", "", output) == ""
    [command] = re.findall(r"^  (.* -m pytest .*)$", output, re.MULTILINE)
    done = subprocess.run(
        command, shell=True, cwd=small_project.root, capture_output=True, text=True, check=False
    )
    assert "1 failed in" in done.stdout


def test_on_a_terminal_the_progress_is_one_line_that_changes(
    small_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("test", "--unit", "--select=not waits and not fails")
    status, output = small_project.invoke_on_terminal(
        monkeypatch, *arguments, COLUMNS="60", LINES="20"
    )
    assert status == 0
    assert "\r\x1b[2K1/1 tests/unit: " in output
    # Before permanent lines, the output shows the cursor and erases the line.
    assert "\x1b[?25h\r\x1b[1A\x1b[2K" in output
    assert output.endswith("1 passed, 0 failed, 3 skipped\r\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_lets_fixtures_clean_up(
    small_project: Project, number: signal.Signals
) -> None:
    """A signal during test_waits ends pytest after the teardown of the fixture ``teardown``."""
    process = small_project.start("test", "--unit", "--select=waits or passes")
    while not (small_project.root / "began").exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (small_project.root / "ended").exists()
    # `--select` does not deselect test_b.py, because it skips itself during the collection.
    assert "\n1 passed, 0 failed, 1 skipped\ninterrupted" in output
    [file] = small_project.root.glob("build/tests/events/*/*.jsonl")
    [collected] = re.findall(r'"collected": .*', file.read_text())
    assert collected.count("::") == 2


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        ((), 1),
        (("--thorough",), 10),
        # The nine thorough tests have 7 parts. Parts 0 and 1 have two tests; other parts have one.
        (("--turn=0",), 2),
        (("--turn=6",), 1),
        (("--turn=20423",), 1),
        (("tests/test_a.py::test_thorough[3]",), 1),
    ],
)
def test_thorough_tests_run_on_request(
    tmp_path: Path, options: tuple[str, ...], passed: int
) -> None:
    """Thorough tests run with --thorough, with --turn, and if the command line names them."""
    (tmp_path / "tests").mkdir()
    shutil.copy(paths.ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "tests" / "test_a.py").write_text(
        "import pytest\n"
        "def test_short(): pass\n"
        "@pytest.mark.thorough\n"
        "@pytest.mark.parametrize('n', range(9))\n"
        "def test_thorough(n): pass\n"
    )
    arguments = options if "::" in "".join(options) else ("tests", *options)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{passed} passed" in done.stdout, done.stdout
