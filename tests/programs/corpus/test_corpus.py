"""Compare the results of programs with stock Theano's results; no optimizer may fail.

The programs resemble public programs. The tests run them in a stack's environment. To write stock
Theano's results to stock.json, run compare_with_stock.py.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import compare_with_stock
import programs

RECORDS = compare_with_stock.read_records()


@pytest.mark.parametrize("name", programs.NAMES)
def test_results_equal_stock_theanos_results(name, tmp_path, seconds_to_first_result):
    # Do not pass --old-names: a stack must have theano.tensor.signal.downsample, which sentence_cnn
    # imports and Theano 1.0.5 lacks.
    values = programs.run(name, tmp_path)
    seconds_to_first_result[name] = values["seconds"]
    assert values["failures"] == []
    assert RECORDS[name]["digest"] == compare_with_stock.compute_digest(name), (
        f"{name} changed: run compare_with_stock.py"
    )
    for number, (actual, expected) in enumerate(zip(values["results"], RECORDS[name]["results"])):
        assert programs.agree(actual, expected), f"result {number}: {actual}, not {expected}"
    assert len(values["results"]) == len(RECORDS[name]["results"])


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
