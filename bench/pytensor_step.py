"""Build the measured graphs in PyTensor: run ``theano_step`` with PyTensor under Theano's names.

This module registers PyTensor as the module ``theano`` before it imports ``theano_step``. PyTensor
has no module ``nnet``. This module composes the functions of ``nnet`` from PyTensor's operations.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.compile import ProfileStats
from pytensor.tensor.special import softmax


class Profile(ProfileStats):  # type: ignore[misc]
    """A profile of PyTensor with the attribute names of Theano's profile."""

    @property
    def optimizer_time(self) -> float:
        """The seconds that the rewrites of the graph took."""
        return float(self.rewriting_time)


def compute_row_softmax(x: Any) -> Any:
    """Compute the softmax of each row, like Theano: a vector is a matrix with one row."""
    return softmax(x, axis=-1) if x.ndim == 2 else softmax(x)[None]


def binary_crossentropy(output: Any, target: Any) -> Any:
    """Return the elementwise binary cross-entropy of an output in (0, 1)."""
    return -(target * pt.log(output) + (1 - target) * pt.log(1 - output))


nnet = types.SimpleNamespace(
    binary_crossentropy=binary_crossentropy,
    sigmoid=pt.sigmoid,
    softmax=compute_row_softmax,
    softplus=pt.softplus,
)
tensor: Any = types.SimpleNamespace(**{**vars(pt), "abs_": pt.abs, "nnet": nnet})
theano: Any = types.SimpleNamespace(
    **{**vars(pytensor), "tensor": tensor, "compile": types.SimpleNamespace(ProfileStats=Profile)}
)
signal: Any = types.SimpleNamespace(pool=None)
sys.modules.update({"theano": theano, "theano.tensor": tensor, "theano.tensor.signal": signal})

from theano_step import compile_step  # noqa: E402, F401 (it imports the replacements of Theano)
