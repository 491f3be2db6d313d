"""RNNBlock's weights, sized and split by the real libcudnn, which needs no device for that.

theano_fast.nn sizes and splits them alike.
"""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

WEIGHTS = Path(__file__).with_name("weights.py")
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
# In cuDNN's order.
NAMES = {"rnn_relu": "h", "rnn_tanh": "h", "gru": "rzh", "lstm": "ifco"}
INPUTS, UNITS = 5, 7
# The checkout's, before the environment's.


@pytest.mark.parametrize("input_mode", ["linear", "skip"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("mode", GATES)
def test_the_parts_are_all_the_weights(run, mode, direction, input_mode):
    done = run(WEIGHTS, mode, direction, input_mode)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    directions = 2 if direction == "bidirectional" else 1
    numbers = []
    for layer, (parts, shapes) in enumerate(zip(found["parts"], found["shapes"], strict=True)):
        inputs = directions * UNITS if layer >= directions else INPUTS
        if layer < directions and input_mode == "skip":
            inputs = 0
        # A matrix and a bias for each gate: those of the input, then those of the state.
        matrices = [[inputs, UNITS if inputs else 0]] * GATES[mode]
        matrices += [[UNITS, UNITS]] * GATES[mode]
        assert shapes[::2] == matrices
        assert shapes[1::2] == [[UNITS]] * (2 * GATES[mode])
        for matrix in parts[::2]:
            # cuDNN's rows are units; the view, which inputs multiply from the left, is transposed.
            assert np.all(np.diff(matrix, axis=0) == 1) or not matrix
        numbers += [number for part in parts for number in np.ravel(part)]
    assert sorted(numbers) == list(range(found["size"]))

    count, ours = found["nn"]
    assert count == found["size"]
    turns = ("forward", "backward")[:directions]
    for parts, (layer, turn) in zip(found["parts"], itertools.product("01", turns), strict=True):
        names = [
            f"{layer}.{turn}.{prefix}{kind}_{gate}"
            for kind, gate in itertools.product("WR", NAMES[mode])
            for prefix in ("", "b")
        ]
        for name, part in zip(names, parts, strict=True):
            # Where cuDNN has a view without elements, nn has no part.
            assert ours.pop(name, []) == part
    assert not ours
