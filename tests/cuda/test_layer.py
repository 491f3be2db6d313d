"""theano_fast.nn uses RNNBlock if a device is in use, and its graphs compile."""

import json
from pathlib import Path

import pytest

LAYER = Path(__file__).with_name("layer.py")


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
def test_a_layer_is_an_rnnblock(run, mode):
    done = run(LAYER, mode, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    cudnn_ops = {"GpuDnnRNNOp", "GpuDnnRNNGradInputs", "GpuDnnRNNGradWeights"}
    assert cudnn_ops <= set(result["compiled"])
    assert "Scan" not in result["compiled"]
    assert "GpuDnnRNNOp" in result["double"]
    assert "Scan" in result["scan"]
    assert "GpuDnnRNNOp" not in result["scan"]
    # cuDNN reads arrays as if they were in C order.
    assert result["read"]["GpuDnnRNNOp"] == ["GpuContiguous"]
    assert result["read"]["GpuDnnRNNGradInputs"] == ["GpuContiguous", "GpuDnnRNNOp"]
    assert result["read"]["GpuDnnRNNGradWeights"] == ["GpuContiguous", "GpuDnnRNNOp"]
