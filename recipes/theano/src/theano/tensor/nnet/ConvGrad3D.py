"""Alias of Conv3D.convGrad3D for programs that import it from here, as in Theano 0.6 to 0.9."""

from typing import Any

from theano.tensor.nnet.Conv3D import convGrad3D

__all__ = ["ConvGrad3D", "convGrad3D"]


def ConvGrad3D() -> Any:
    """Return convGrad3D, which was an instance of the op class ConvGrad3D in Theano 0.6 to 0.9."""
    return convGrad3D
