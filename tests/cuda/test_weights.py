"""libcudnn sizes and splits RNNBlock's weights without a device; theano_fast.nn does the same."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

WEIGHTS = Path(__file__).with_name("weights.py")
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
# The order of cuDNN's gates.
NAMES = {"rnn_relu": "h", "rnn_tanh": "h", "gru": "rzh", "lstm": "ifco"}
INPUTS, UNITS = 5, 7
# Import theano_fast from the checkout, not from the environment.


@pytest.mark.parametrize("input_mode", ["linear", "skip"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("mode", GATES)
def test_the_parts_cover_all_weights(run, mode, direction, input_mode):
    done = run(WEIGHTS, mode, direction, input_mode)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    directions = 2 if direction == "bidirectional" else 1
    numbers = []
    for layer, (parts, shapes) in enumerate(zip(result["parts"], result["shapes"], strict=True)):
        inputs = directions * UNITS if layer >= directions else INPUTS
        if layer < directions and input_mode == "skip":
            inputs = 0
        # A matrix and a bias for each gate: first for the input, then for the state.
        matrices = [[inputs, UNITS if inputs else 0]] * GATES[mode]
        matrices += [[UNITS, UNITS]] * GATES[mode]
        assert shapes[::2] == matrices
        assert shapes[1::2] == [[UNITS]] * (2 * GATES[mode])
        for matrix in parts[::2]:
            # The rows of cuDNN's matrices are units; the view is transposed.
            assert np.all(np.diff(matrix, axis=0) == 1) or not matrix
        numbers += [number for part in parts for number in np.ravel(part)]
    assert sorted(numbers) == list(range(result["size"]))

    count, size = result["nn"]
    assert count == result["size"]
    turns = ("forward", "backward")[:directions]
    for parts, (layer, turn) in zip(result["parts"], itertools.product("01", turns), strict=True):
        names = [
            f"{layer}.{turn}.{prefix}{kind}_{gate}"
            for kind, gate in itertools.product("WR", NAMES[mode])
            for prefix in ("", "b")
        ]
        for name, part in zip(names, parts, strict=True):
            # nn has no part for an empty view of cuDNN.
            assert size.pop(name, []) == part
    assert not size
