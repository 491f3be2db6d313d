"""Record the values of a program's functions in two runs, and find the first difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Train with a learning rate from the command line, and call a second function after each step.
PROGRAM = """
import os, sys
import numpy, theano, theano.tensor as T
assert __name__ == "__main__"
W, x = theano.shared(numpy.ones((8, 8)), "W"), T.dtensor3("x")
states, _ = theano.scan(lambda x, h: T.tanh(T.dot(x, W) + h), [x], [T.zeros((4, 8))])
cost = states[-1].sum()
cost.name = "cost"
slope = theano.grad(cost, W) * float(sys.argv[1])
step = theano.function([x], cost, updates=[(W, W - slope)], name="step")
k = T.dscalar("k")
look = theano.function([x, theano.In(k, value=2)], [k * T.exp(x).sum(axis=0)])
for n in range(20):
    step(x=numpy.full((5, 4, 8), n / 100))
    look(numpy.full((5, 4, 8), n / 100), k=3)
sys.exit(7)
"""


def test_records_differ_first_where_the_programs_differ(
    prefix: Path, run: Any, tmp_path: Path
) -> None:
    """Equal runs have equal records; with a different rate, the first difference is in line 9."""
    (tmp_path / "train.py").write_text(PROGRAM)
    command = prefix / "bin" / "theano-fast"
    for name, factor in (("a", "0.01"), ("b", "0.01"), ("c", "0.02")):
        arguments = ("run", "--nodes", "1", "--out", f"{name}.json", "train.py", factor)
        result = run(command, "record", *arguments)
        assert result.returncode == 7, result.stderr
    same = run(command, "record", "compare", "a.json", "b.json")
    assert (same.returncode, same.stderr) == (0, "")
    different = run(command, "record", "compare", "a.json", "c.json", "--json")
    assert different.returncode == 4
    first = json.loads(different.stdout)["first"]
    assert (first["function"], first["call"]) == ("1 step train.py:14", 1)
    # The first node with a different value computes the learning rate, or multiplies by it.
    assert "Elemwise{mul" in first["value"] or "DimShuffle" in first["value"], first
    assert "train.py:9" in first["value"]
    recorded = json.loads((tmp_path / "a.json").read_text())["functions"]
    assert [
        (function["name"], function["called"], len(function["calls"])) for function in recorded
    ] == [
        ("step", 20, 11),
        ("train.py:12", 20, 11),
    ]
    assert recorded[0]["inputs"] == ["x", "W"]
    assert recorded[0]["updates"] == ["W"]


def test_a_bad_record_is_reported_in_one_line(prefix: Path, run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    result = run(prefix / "bin" / "theano-fast", "record", "compare", "a.json", "a.json")
    assert result.returncode == 1
    assert result.stderr.startswith("theano-fast: a.json is not a record")
    assert result.stderr.count("\n") == 1


SUMMARIES = """
import json
import numpy, scipy.sparse
from theano_fast.recording.recorder import summarize
values = (
    numpy.arange(100_000, dtype="float32"), numpy.array([[1, numpy.nan]]), numpy.array([1 + 2j]),
    numpy.zeros((0, 2)), 2.5, scipy.sparse.eye(3), numpy.random.RandomState(1), [[1], [2, 3]],
)
print(json.dumps([summarize(value) for value in values]))
"""


def test_the_size_of_records_is_bounded(prefix: Path, run: Any) -> None:
    """The summary of a long array has 64 samples and 64 means; other summaries are shorter."""
    result = run(prefix / "bin" / "python", "-c", SUMMARIES)
    assert result.returncode == 0, result.stderr
    long, short, complex_, empty, number, sparse, state, ragged = json.loads(result.stdout)
    assert len(long["sample"]) == len(long["means"]) == 64
    assert (long["sample"][0], long["sample"][-1], long["largest"]) == (0, 99_999, 99_999)
    assert (short["shape"], short["finite"], "means" in short) == ([1, 2], 1, False)
    # The sample of a complex number is its real and its imaginary part.
    assert (complex_["sample"], empty["shape"], number["sample"]) == ([1, 2], [0, 2], [2.5])
    assert (sparse["shape"], sparse["sample"]) == ([3, 3], [1, 1, 1])
    assert (state, ragged) == ({"dtype": "RandomState"}, {"dtype": "list"})
