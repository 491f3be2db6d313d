"""Test the comparison of two records, and the description of the first difference."""

import copy
import json
import math

import pytest
from theano_fast.recording import record_comparison, recorder


def make_array(*values, dtype="float32", **others):
    """Return the recorder's summary of an array; the builder's Python has no NumPy."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    tree = {"dtype": dtype, "shape": [len(values)], "sha256": repr(values), "sample": list(values)}
    return {**tree, "largest": max(finite, default=0), "finite": len(finite), **others}


def make_call(number, at, outputs, inputs=()):
    """Return a recorded call.

    Args:
        number: the number of the call among the calls of the function, from 1.
        at: the number of the call among the calls of all functions, from 1.
        outputs, inputs: summaries of arrays.
    """
    return {"call": number, "at": at, "inputs": list(inputs), "outputs": outputs, "updates": []}


def make_function(number, name, *calls, called=None, **others):
    """Return a recorded function with its calls; it was called ``called`` times."""
    names = {"inputs": ["x"] * len(calls[0]["inputs"]), "outputs": ["cost"], "updates": []}
    tree = {"number": number, "name": name, "line": "train.py:3", "called": called or len(calls)}
    return {**tree, **names, "calls": list(calls), **others}


def make_record(*functions):
    return {"format": recorder.FORMAT, "functions": list(functions)}


@pytest.fixture
def record():
    """Return a record of the functions step and look; the calls are step, look, step."""
    first = make_function(
        1, "step", make_call(1, 1, [make_array(1, 2)]), make_call(2, 3, [make_array(3, 4)])
    )
    return make_record(first, make_function(2, "look", make_call(1, 2, [make_array(5, 6)])))


def get_outputs(tree, index, number=0):
    """Return the outputs of call ``number`` of the function ``index``; both count from 0."""
    return tree["functions"][index]["calls"][number]["outputs"]


def test_equal_values_and_rounding_errors_are_no_differences(record):
    other = copy.deepcopy(record)
    get_outputs(other, 0)[0] = make_array(1, 2.00001)
    comparison = record_comparison.compare(record, other)
    assert comparison.first is None
    counts = [(function.values, function.equal) for function in comparison.functions]
    assert counts == [(2, 1), (1, 1)]
    assert 0 < comparison.functions[0].distance < 1
    lines = list(record_comparison.make_table(comparison, ("a", "b")))
    assert "nothing differs beyond rounding" in lines


def test_the_difference_in_the_earliest_call_is_named(record):
    other = copy.deepcopy(record)
    get_outputs(other, 0, 1)[0] = make_array(3, 5)
    get_outputs(other, 1)[0] = make_array(5, 7)
    first = record_comparison.compare(record, other).first
    assert str(first).startswith("2 look train.py:3, call 1: output 0 cost differs by 1.4e-01")
    assert record_comparison.compare(record, other, factor=1e5).first is None


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (make_array(1, 2, dtype="float64"), "has dtype float32, float64 in the other record"),
        (make_array(1, 2, 3), "has shape [2], [3] in the other record"),
        (make_array(1, math.nan), "has 2 finite values, 1 in the other record"),
    ],
)
def test_another_dtype_shape_or_number_of_finite_values_is_a_difference(record, value, description):
    other = copy.deepcopy(record)
    get_outputs(other, 0)[0] = value
    assert record_comparison.compare(record, other).first.description == description


def test_integers_must_be_equal():
    assert (
        record_comparison.describe_difference(
            make_array(1, dtype="int64"), make_array(2, dtype="int64")
        )[0]
        == "of int64 differs"
    )


def test_a_difference_outside_of_the_sample_is_found_in_the_means():
    first, other = (make_array(1, 1, sha256=mean, means=[1, mean]) for mean in (1, 1.01))
    assert record_comparison.describe_difference(first, other)[1] > 1


def test_nan_and_infinity_equal_themselves():
    assert (
        record_comparison.describe_difference(
            make_array(math.nan, math.inf, 1), make_array(math.nan, math.inf, 1.00001)
        )[1]
        < 1
    )
    assert (
        record_comparison.describe_difference(make_array(math.inf, 1), make_array(-math.inf, 1))[1]
        > 1
    )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda tree: tree["functions"][1].update(name="other"), "another function: 2 other"),
        (lambda tree: tree["functions"].pop(), "calls 2 functions, and 1 in the other"),
        (lambda tree: tree["functions"][0].update(called=9), "is called 2 times, and 9 times"),
    ],
)
def test_another_function_or_number_of_calls_is_reported(record, change, text):
    other = copy.deepcopy(record)
    change(other)
    assert text in str(record_comparison.compare(record, other).first)


def test_a_different_node_is_reported_before_the_output():
    def compare(node, value):
        return record_comparison.compare(make(1, 1), make(node, value))

    def make(node, value):
        with_nodes = {
            **make_call(1, 1, [make_array(value)]),
            "nodes": [make_array(1), make_array(node)],
        }
        return make_record(
            make_function(1, "step", with_nodes, nodes=["0 exp", "1 dot (train.py:2)"])
        )

    assert compare(2, 2).first.value == "node 1 dot (train.py:2)"
    comparison = compare(1, 2)
    assert comparison.first.value == "output 0 cost"
    assert "no node" in comparison.notes[0]


@pytest.mark.parametrize(
    ("nodes", "names", "notes"),
    [
        ([make_array(1)], ["0 exp"], ["no node of the unoptimized graph differs"]),
        ([make_array(7)], ["0 log"], ["1 step train.py:3: the unoptimized graphs differ"]),
        (None, None, []),
        ([], ["0 exp"], []),
    ],
)
def test_only_nodes_of_equal_graphs_are_compared(nodes, names, notes):
    """The other record has another graph, no nodes, or another number of nodes."""

    def make(value, nodes, names):
        others = {} if names is None else {"nodes": names}
        call = make_call(1, 1, [make_array(value)])
        if nodes is not None:
            call["nodes"] = nodes
        return make_record(make_function(1, "step", call, **others))

    comparison = record_comparison.compare(
        make(1, [make_array(1)], ["0 exp"]), make(2, nodes, names)
    )
    assert comparison.first.value == "output 0 cost"
    pairs = zip(comparison.notes, notes, strict=True)
    assert all(note.startswith(start) for note, start in pairs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ('{"format": ', "is not a record, or is truncated"),
        ('{"format": "theano"}', "is not a record of"),
        (json.dumps({"format": recorder.FORMAT, "functions": []}), "no Theano function"),
    ],
)
def test_the_error_of_an_unreadable_record_has_one_line(tmp_path, text, message):
    file = tmp_path / "a.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(record_comparison.RecordError, match=message) as raised:
        record_comparison.read(file)
    assert "\n" not in str(raised.value)
