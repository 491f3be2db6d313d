"""theano_fast.nn uses cuDNN's RNNBlock on a device, and the graphs of its layers compile."""

import json
from pathlib import Path

import pytest

LAYER = Path(__file__).with_name("layer.py")


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
def test_a_layer_is_an_rnnblock(run, mode):
    """The graph has cuDNN's ops and no Scan, unless the layer requests the back end "scan"."""
    done = run(LAYER, mode, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    cudnn_ops = {"GpuDnnRNNOp", "GpuDnnRNNGradInputs", "GpuDnnRNNGradWeights"}
    assert cudnn_ops <= set(result["compiled"])
    assert "Scan" not in result["compiled"]
    assert "GpuDnnRNNOp" in result["double"]
    assert "Scan" in result["scan"]
    assert "GpuDnnRNNOp" not in result["scan"]
    # cuDNN requires arrays in C order, so GpuContiguous copies arrays in other orders.
    assert result["read"]["GpuDnnRNNOp"] == ["GpuContiguous"]
    assert result["read"]["GpuDnnRNNGradInputs"] == ["GpuContiguous", "GpuDnnRNNOp"]
    assert result["read"]["GpuDnnRNNGradWeights"] == ["GpuContiguous", "GpuDnnRNNOp"]
