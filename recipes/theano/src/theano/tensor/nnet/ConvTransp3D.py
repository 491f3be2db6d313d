"""Alias of Conv3D.convTransp3D for programs that import it from here, as in Theano 0.6 to 0.9."""

from typing import Any

from theano.tensor.nnet.Conv3D import convTransp3D

__all__ = ["ConvTransp3D", "convTransp3D"]


def ConvTransp3D() -> Any:
    """Return convTransp3D, an instance of the op class ConvTransp3D in Theano 0.6 to 0.9."""
    return convTransp3D
