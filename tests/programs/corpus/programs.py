"""Run the programs of this folder, and compare their results."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
RUN = FOLDER / "run_program.py"
# The names of the programs. Modules without the function results are not programs.
NAMES = tuple(
    sorted(
        file.stem
        for file in FOLDER.glob("*.py")
        if "def results()" in file.read_text(encoding="utf-8") and file != Path(__file__)
    )
)
# The relative and the absolute tolerance of results; all programs compute in float64.
TOLERANCE = 1e-6


def run(name, compiledir, *options, python=sys.executable):
    """Run a program in a new process, with its base_compiledir.

    Raises:
        AssertionError: the program fails.
    """
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(compiledir),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "THEANO_FLAGS": f"floatX=float64,base_compiledir={compiledir}",
    }
    done = subprocess.run(
        [python, RUN, name, *options], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{name} on {python}:\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def agree(actual, expected):
    """Return whether two results have the same structure, texts, and numbers up to rounding."""
    if isinstance(actual, list) and isinstance(expected, list):
        return len(actual) == len(expected) and all(map(agree, actual, expected))
    if isinstance(actual, str) or isinstance(expected, str):
        return actual == expected
    return math.isclose(actual, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
