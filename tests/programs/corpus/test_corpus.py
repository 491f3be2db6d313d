"""Compare the results of programs with stock Theano's results; no optimizer may fail.

The programs resemble public programs and run in a stack's environment. compare_with_stock.py runs
them on stock Theano too and writes its results to stock.json.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import compare_with_stock
import programs

RECORD = compare_with_stock.record()


@pytest.mark.parametrize("name", programs.NAMES)
def test_results_equal_stock_theanos_results(name, tmp_path, seconds_to_first_result):
    # sentence_cnn imports theano.tensor.signal.downsample, which Theano 1.0.5 lacks.
    values = programs.run(name, tmp_path)
    seconds_to_first_result[name] = values["seconds"]
    assert values["failures"] == []
    assert RECORD[name]["digest"] == compare_with_stock.digest(name), (
        "run compare_with_stock.py: it changed"
    )
    for number, (here, stock) in enumerate(zip(values["results"], RECORD[name]["results"])):
        assert programs.agree(here, stock), f"result {number}: {here}, not {stock}"
    assert len(values["results"]) == len(RECORD[name]["results"])


def test_results_that_differ_do_not_agree():
    assert programs.agree([1.0, ["a"]], [1.0 + 1e-9, ["a"]])
    for other in (
        [1.0001, ["a"]],
        [1.0, ["b"]],
        [1.0],
        [1.0, "a"],
        [1.0, ["a"], 2],
        [float("nan"), ["a"]],
    ):
        assert not programs.agree([1.0, ["a"]], other)
