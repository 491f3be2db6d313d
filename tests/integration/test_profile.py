"""Profile unchanged programs with ``theano-fast profile``, and measure its advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROGRAM = """
import os, sys
os.environ["THEANO_FLAGS"] += ",floatX=float32"
import numpy, theano, theano.tensor as T
assert __name__ == "__main__" and theano.config.floatX == "float32"
W, x = theano.shared(numpy.ones((8, 8), "float32")), T.ftensor3("x")
states, _ = theano.scan(lambda x, h: T.tanh(T.dot(x, W) + h), [x], [T.zeros((4, 8), "float32")])
step = theano.function([x], states[-1].sum(), name="step")
for _ in range(int(sys.argv[1])):
    step(numpy.ones((5, 4, 8), "float32"))
sys.exit(7)
"""


def test_a_program_is_profiled_unchanged(prefix: Path, run: Any, tmp_path: Path) -> None:
    """The command returns the program's exit status and writes three files about its functions."""
    (tmp_path / "train.py").write_text(PROGRAM)
    result = run(prefix / "bin" / "theano-fast", "profile", "train.py", "3")
    assert result.returncode == 7, result.stderr
    document = json.loads((tmp_path / "train-profile.json").read_text())
    profiles = {profile["message"] or profile["title"]: profile for profile in document["profiles"]}
    step, scan = profiles["step"], profiles["Scan Op profiling ( scan_fn )"]
    assert (step["calls"], scan["calls"], scan["numbers"]["steps"]) == (3, 3, 15)
    notes = [row["notes"] for row in scan["tables"]["Apply"]["rows"]]
    assert any("train.py:7: states" in line for lines in notes for line in lines)
    assert document["advice"] == {"suggestions": [], "trials": []}
    assert (tmp_path / "train-profile.html").stat().st_size > 10_000
    assert "speedscope" in (tmp_path / "train-profile.speedscope.json").read_text()


DRAWS = """
import theano
from theano.tensor.shared_randomstreams import RandomStreams
theano.function([], RandomStreams(1).normal((3, 3)) * 2, name="draw")()
"""


def test_advice_is_measured(prefix: Path, run: Any, tmp_path: Path) -> None:
    """With --advise, the report has the speed-up factor of each setting that was tried."""
    (tmp_path / "draw.py").write_text(DRAWS)
    result = run(prefix / "bin" / "theano-fast", "profile", "run", "--advise", "draw.py")
    assert result.returncode == 0, result.stderr
    advice = json.loads((tmp_path / "draw-profile.json").read_text())["advice"]
    assert "MRG_RandomStreams draws in C (node " in advice["suggestions"][0]
    tried = {trial["name"]: trial["factor"] for trial in advice["trials"]}
    assert {"floatX = float32", "allow_gc = False", "unchanged, again"} <= set(tried)
    assert all(factor > 0 for factor in tried.values()), result.stderr
    assert "floatX = float32" in (tmp_path / "draw-profile.html").read_text()
