import copy
import json
import math

import pytest
from theano_fast.recording import comparing, recorder


def array(*values, dtype="float32", **others):
    """What the recorder keeps of an array; NumPy is not installed here."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    told = {"dtype": dtype, "shape": [len(values)], "sha256": repr(values), "sample": list(values)}
    return {**told, "largest": max(finite, default=0), "finite": len(finite), **others}


def call(number, at, outputs, inputs=()):
    return {"call": number, "at": at, "inputs": list(inputs), "outputs": outputs, "updates": []}


def function(number, name, *calls, called=None, **others):
    names = {"inputs": ["x"] * len(calls[0]["inputs"]), "outputs": ["cost"], "updates": []}
    told = {"number": number, "name": name, "line": "train.py:3", "called": called or len(calls)}
    return {**told, **names, "calls": list(calls), **others}


def record(*functions):
    return {"format": recorder.FORMAT, "functions": list(functions)}


@pytest.fixture
def ours():
    """Two functions called in turns."""
    first = function(1, "step", call(1, 1, [array(1, 2)]), call(2, 3, [array(3, 4)]))
    return record(first, function(2, "look", call(1, 2, [array(5, 6)])))


def output(tree, place, number=0):
    return tree["functions"][place]["calls"][number]["outputs"]


def test_the_same_and_rounding_do_not_differ(ours):
    theirs = copy.deepcopy(ours)
    output(theirs, 0)[0] = array(1, 2.00001)
    compared = comparing.compare(ours, theirs)
    assert compared.first is None
    assert [(each.values, each.equal) for each in compared.functions] == [(2, 1), (1, 1)]
    assert 0 < compared.functions[0].far < 1
    assert "nothing differs beyond rounding" in list(comparing.table(compared, ("a", "b")))


def test_the_first_in_time_is_named(ours):
    theirs = copy.deepcopy(ours)
    output(theirs, 0, 1)[0] = array(3, 5)
    output(theirs, 1)[0] = array(5, 7)
    first = comparing.compare(ours, theirs).first
    assert str(first).startswith("2 look train.py:3, call 1: output 0 cost differs by 1.4e-01")
    assert comparing.compare(ours, theirs, factor=1e5).first is None


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (array(1, 2, dtype="float64"), "is float32, float64 in the other"),
        (array(1, 2, 3), "is [2], [3] in the other"),
        (array(1, math.nan), "has 2 finite values, 1 in the other"),
    ],
)
def test_what_is_of_another_kind(ours, other, told):
    theirs = copy.deepcopy(ours)
    output(theirs, 0)[0] = other
    assert comparing.compare(ours, theirs).first.told == told


def test_integers_are_the_same_or_not():
    assert (
        comparing.differ(array(1, dtype="int64"), array(2, dtype="int64"))[0] == "of int64 differs"
    )


def test_what_samples_pass_over_shows_in_means():
    one, other = (array(1, 1, sha256=mean, means=[1, mean]) for mean in (1, 1.01))
    assert comparing.differ(one, other)[1] > 1


def test_nan_and_infinity_are_like_themselves():
    assert comparing.differ(array(math.nan, math.inf, 1), array(math.nan, math.inf, 1.00001))[1] < 1
    assert comparing.differ(array(math.inf, 1), array(-math.inf, 1))[1] > 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda tree: tree["functions"][1].update(name="other"), "another function: 2 other"),
        (lambda tree: tree["functions"].pop(), "calls 2 functions, and 1 in the other"),
        (lambda tree: tree["functions"][0].update(called=9), "is called 2 times, and 9 times"),
    ],
)
def test_another_program(ours, change, told):
    theirs = copy.deepcopy(ours)
    change(theirs)
    assert told in str(comparing.compare(ours, theirs).first)


def test_nodes_come_before_outputs():
    def its(node, value):
        made = {**call(1, 1, [array(value)]), "nodes": [array(1), array(node)]}
        return record(function(1, "step", made, nodes=["0 exp", "1 dot (train.py:2)"]))

    assert comparing.compare(its(1, 1), its(2, 2)).first.value == "node 1 dot (train.py:2)"
    compared = comparing.compare(its(1, 1), its(1, 2))
    assert compared.first.value == "output 0 cost"
    assert "no node" in compared.notes[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cannot be read: No such file"),
        ('{"format": ', "is no record, or cut"),
        ('{"format": "theano"}', "is no record of"),
        (json.dumps({"format": recorder.FORMAT, "functions": []}), "called no function"),
    ],
)
def test_a_bad_file_is_told_in_one_line(tmp_path, text, told):
    file = tmp_path / "a.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(comparing.RecordError, match=told) as raised:
        comparing.read(file)
    assert "\n" not in str(raised.value)
