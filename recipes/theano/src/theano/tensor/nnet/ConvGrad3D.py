"""Provide the gradient of the 3-D convolution under its name in Theano 0.6 to 0.9."""

from typing import Any

from theano.tensor.nnet.Conv3D import convGrad3D

__all__ = ["ConvGrad3D", "convGrad3D"]


def ConvGrad3D() -> Any:
    """Return convGrad3D, which was an instance of this op."""
    return convGrad3D
