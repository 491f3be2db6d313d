"""Compare the parts of cuDNN's weights in RNNBlock and in theano_fast.nn.

The weights of all layers are one vector. libcudnn computes its size and its parts without a device.
theano_fast.nn computes them in Python.
"""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

WEIGHTS = Path(__file__).with_name("weights.py")
# The number of gates of each mode.
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
# The names of the gates in theano_fast.nn, in cuDNN's order.
NAMES = {"rnn_relu": "h", "rnn_tanh": "h", "gru": "rzh", "lstm": "ifco"}
INPUTS, UNITS = 5, 7


@pytest.mark.parametrize("input_mode", ["linear", "skip"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("mode", GATES)
def test_the_parts_cover_all_weights(run, mode, direction, input_mode):
    """Each weight is in one part; the parts of cuDNN and of theano_fast.nn are equal."""
    done = run(WEIGHTS, mode, direction, input_mode)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    directions = 2 if direction == "bidirectional" else 1
    numbers = []
    for layer, (parts, shapes) in enumerate(zip(result["parts"], result["shapes"], strict=True)):
        inputs = directions * UNITS if layer >= directions else INPUTS
        if layer < directions and input_mode == "skip":
            inputs = 0
        # The first matrices multiply the input, one for each gate. The others multiply the state.
        matrices = [[inputs, UNITS if inputs else 0]] * GATES[mode]
        matrices += [[UNITS, UNITS]] * GATES[mode]
        assert shapes[::2] == matrices
        assert shapes[1::2] == [[UNITS]] * (2 * GATES[mode])
        for matrix in parts[::2]:
            # In cuDNN, each unit has a row of the matrix. RNNBlock transposes the matrix, so the
            # numbers increase by 1 along a column.
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
            # With the input mode "skip", cuDNN has empty parts, which theano_fast.nn omits.
            assert size.pop(name, []) == part
    assert not size
