"""Run the commands of ``theano-fast cache`` on compile caches that the real compiler fills."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

# Compile one function, print its result and the arguments, and exit with 3. The optional second
# argument is the number of seconds to sleep before the exit.
PROGRAM = """
import sys, time
import theano, theano.tensor as tt
x = tt.dvector()
print(theano.function([x], tt.exp(x) + 1)([0.0]), *sys.argv[1:], flush=True)
time.sleep(int(sys.argv[2]) if sys.argv[2:] else 0)
sys.exit(3)
"""

FOUR_FUNCTIONS = """
import theano, theano.tensor as tt
x = tt.dvector()
print([float(theano.function([x], tt.exp(x) + i)([0.0])[0]) for i in range(4)])
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Write PROGRAM to a file."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@pytest.fixture
def cache(prefix: Path, run: Command) -> Command:
    """Return a function that runs ``theano-fast cache`` with Theano's ``flags``.

    The shipped modules are disabled, so that functions must be compiled.
    """

    def start(*argv: str | Path, flags: str = "") -> subprocess.CompletedProcess[str]:
        flags = f"cmodule.shipped=,{flags}"
        return run(prefix / "bin" / "theano-fast", "cache", *argv, THEANO_FLAGS=flags)

    return start


def parse_module_counts(output: str) -> list[int]:
    """Return the number of modules of each cache that the output describes."""
    return [int(number) for number in re.findall(r"^  modules +(\d+)", output, re.MULTILINE)]


def test_a_warm_cache_is_exported_and_cleaned(
    cache: Command, program: Path, tmp_path: Path
) -> None:
    assert cache("export", tmp_path / "none.tar.gz").returncode == 1
    warmed = cache("warm", program, "--flag")
    assert (warmed.returncode, parse_module_counts(warmed.stdout)) == (3, [1]), warmed.stderr
    assert "[2.] --flag" in warmed.stdout
    exported = cache("export", tmp_path / "seed.tar.gz")
    assert exported.returncode == 0, exported.stderr
    seed = tmp_path / "seed"
    seed.mkdir()
    subprocess.run(["tar", "-xzf", tmp_path / "seed.tar.gz", "-C", seed], check=True)
    flags = f"base_compiledir={tmp_path}/other,cmodule.seeds={seed}"
    again = cache("warm", program, flags=flags)
    assert parse_module_counts(again.stdout) == [0, 1], again.stderr
    cleaned = cache("clean", "--max-size=0")
    assert "used within a day" in cleaned.stdout
    assert parse_module_counts(cache("info").stdout) == [1]
    assert cache("clean", "--all").returncode == 0
    assert parse_module_counts(cache("info").stdout) == [0]


def test_seed_caches_are_searched_in_order(cache: Command, program: Path, tmp_path: Path) -> None:
    seeds = [tmp_path / "first", tmp_path / "second"]
    texts = [PROGRAM, PROGRAM.replace("+ 1", "+ 2")]
    for seed, text in zip(seeds, texts, strict=True):
        program.write_text(text)
        flags = f"base_compiledir={tmp_path}/compiledir-{seed.name}"
        cache("warm", program, flags=flags)
        assert cache("export", tmp_path / "seed.tar.gz", flags=flags).returncode == 0
        seed.mkdir()
        subprocess.run(["tar", "-xzf", tmp_path / "seed.tar.gz", "-C", seed], check=True)
    flags = f"base_compiledir={tmp_path}/other,cmodule.seeds={seeds[0]}:{seeds[1]}"
    for text, result in zip(texts, ("[2.]", "[3.]"), strict=True):
        program.write_text(text)
        again = cache("warm", program, flags=flags)
        assert result in again.stdout
        assert parse_module_counts(again.stdout) == [0, 1, 1], again.stderr


def test_the_cache_is_cleaned_while_programs_run(cache: Command, program: Path) -> None:
    program.write_text(FOUR_FUNCTIONS)
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(cache, "warm", program) for _ in range(2)]
        while not all(future.done() for future in running):
            assert cache("clean", "--all").returncode == 0
    for future in running:
        assert "[1.0, 2.0, 3.0, 4.0]" in future.result().stdout, future.result().stderr


def test_warm_stops_a_program_at_the_time_limit(cache: Command, program: Path) -> None:
    """``warm --seconds=20`` stops a program that sleeps for 1,000 s, and returns 0."""
    warmed = cache("warm", "--seconds=20", program, "a", "1000")
    assert (warmed.returncode, parse_module_counts(warmed.stdout)) == (0, [1]), warmed.stderr


def test_an_archive_that_cannot_be_written_is_reported(cache: Command, program: Path) -> None:
    cache("warm", program)
    done = cache("export", "/nowhere/seed.tar.gz")
    assert done.returncode == 1
    assert done.stderr.startswith("theano-fast: /nowhere/seed.tar.gz cannot be written")
