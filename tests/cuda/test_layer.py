"""theano_fast.nn uses RNNBlock where a device is in use: its graphs compile for one."""

import json
from pathlib import Path

import pytest

LAYER = Path(__file__).with_name("layer.py")


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
def test_a_layer_is_an_rnnblock(run, mode):
    done = run(LAYER, mode, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    ours = {"GpuDnnRNNOp", "GpuDnnRNNGradInputs", "GpuDnnRNNGradWeights"}
    assert ours <= set(found["compiled"])
    assert "Scan" not in found["compiled"]
    assert "GpuDnnRNNOp" in found["double"]
    assert "Scan" in found["scan"]
    assert "GpuDnnRNNOp" not in found["scan"]
    # cuDNN takes for granted that what it reads is in C order, as what it wrote is.
    assert found["read"]["GpuDnnRNNOp"] == ["GpuContiguous"]
    assert found["read"]["GpuDnnRNNGradInputs"] == ["GpuContiguous", "GpuDnnRNNOp"]
    assert found["read"]["GpuDnnRNNGradWeights"] == ["GpuContiguous", "GpuDnnRNNOp"]
