"""Provide the transposed 3-D convolution under its name in Theano 0.6 to 0.9."""

from typing import Any

from theano.tensor.nnet.Conv3D import convTransp3D

__all__ = ["ConvTransp3D", "convTransp3D"]


def ConvTransp3D() -> Any:
    """Return convTransp3D, which was an instance of this op."""
    return convTransp3D
