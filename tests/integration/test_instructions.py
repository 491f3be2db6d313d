"""Compare the instructions, modules and allocations of graphs with ``instructions.toml``.

Timings depend on the machine, so the test counts instructions with Cachegrind. It makes g++,
OpenBLAS and NumPy use baseline x86-64 code, and disables the kernels for products, which need AVX2.
So the counts do not depend on the processor.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import tomllib
from support import require

from builder.common import paths

PROGRAM = Path(__file__).with_name("instructions_program.py")
TABLE = tomllib.loads(Path(__file__).with_name("instructions.toml").read_text())
TOLERANCE = 0.02


@pytest.mark.thorough
@pytest.mark.parametrize("graph", TABLE)
def test_costs_are_within_the_tolerance(prefix: Path, tmp_path: Path, graph: str) -> None:
    """The costs of a graph are within the tolerance of the costs in instructions.toml."""
    require("valgrind")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(paths.BENCH),
        "PYTHONHASHSEED": "0",
        # The first process stores the bytecode of all modules. An environment lacks some of it.
        "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode"),
        "THEANO_FLAGS": f"base_compiledir={tmp_path},gcc.cxxflags=-march=x86-64,blas.kernels=False",
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL "
        "AVX512_ICL AVX512_SPR",
    }
    python = [str(prefix / "bin" / "python")]
    cachegrind = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=no",
        f"--cachegrind-out-file={tmp_path}/%p",
        *python,
    ]

    def run(*command: str) -> str:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    costs = json.loads(run(*python, str(PROGRAM), graph, "counts"))
    # The first process under Cachegrind executes up to 5 % more instructions. For example, it
    # stores the properties of the processor that Cachegrind emulates. Count the second process.
    for _ in range(2):
        for cached in tmp_path.glob("*/optimized_graphs/*"):
            cached.unlink()
        counted = json.loads(run(*cachegrind, str(PROGRAM), graph, "instructions"))
    instructions = {
        name: int((tmp_path / str(process)).read_text().split("summary: ")[1])
        for name, process in counted["phases"].items()
    }
    costs["call_instructions"] = (instructions["called"] - instructions["warm"]) / counted["calls"]
    costs["compile_instructions"] = instructions["compiled"] - instructions["built"]
    assert costs == pytest.approx(TABLE[graph], rel=TOLERANCE)
