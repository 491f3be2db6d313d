"""Compute the functions of theano.sandbox.cuda.dnn by theano.tensor.nnet, with or without a GPU.

On a device of theano.gpuarray, Theano's optimizers replace these functions by cuDNN's. The ops of
this module raise an error that names today's ops.
"""

from __future__ import annotations

from typing import Any

from theano.sandbox.cuda.names import dnn_available, dnn_version
from theano.sandbox.cuda.names import find_name as __getattr__
from theano.tensor.nnet import abstract_conv, conv2d
from theano.tensor.signal.pool import pool_2d, pool_3d

__all__ = [
    "__getattr__",
    "dnn_available",
    "dnn_conv",
    "dnn_conv3d",
    "dnn_gradinput",
    "dnn_gradweight",
    "dnn_pool",
    "dnn_version",
    "version",
]
version = dnn_version


def _flips(conv_mode: str) -> bool:
    """Return whether a mode flips the filters; raise ValueError for an unknown mode."""
    if conv_mode not in ("conv", "cross"):
        raise ValueError(f"conv_mode must be 'conv' or 'cross', not {conv_mode!r}")
    return conv_mode == "conv"


def dnn_conv(  # noqa: PLR0913, PLR0917 - the signature of 0.8
    img: Any,
    kerns: Any,
    border_mode: Any = "valid",
    subsample: tuple[int, int] = (1, 1),
    conv_mode: str = "conv",
    direction_hint: str | None = None,
    workmem: str | None = None,
    algo: str | None = None,
    precision: str | None = None,
) -> Any:
    """Convolve images with filters. Ignore the last four arguments, which chose an algorithm.

    Args:
        img: (batch, channels, rows, columns).
        kerns: (output channels, channels, rows, columns).
        border_mode: "valid", "full", "half", or the number of zeros added on each side.
        conv_mode: "conv" flips the filters, "cross" does not.
    """
    flips = _flips(conv_mode)
    return conv2d(img, kerns, border_mode=border_mode, subsample=subsample, filter_flip=flips)


def dnn_conv3d(  # noqa: PLR0913, PLR0917 - the signature of 0.8
    img: Any,
    kerns: Any,
    border_mode: Any = "valid",
    subsample: tuple[int, int, int] = (1, 1, 1),
    conv_mode: str = "conv",
    direction_hint: str | None = None,
    workmem: str | None = None,
    algo: str | None = None,
    precision: str | None = None,
) -> Any:
    """Convolve like dnn_conv, in three dimensions."""
    flips = _flips(conv_mode)
    return abstract_conv.conv3d(
        img, kerns, border_mode=border_mode, subsample=subsample, filter_flip=flips
    )


def dnn_gradweight(  # noqa: PLR0913, PLR0917 - the signature of 0.8
    img: Any,
    topgrad: Any,
    kerns_shp: Any,
    border_mode: Any = "valid",
    subsample: tuple[int, int] = (1, 1),
    conv_mode: str = "conv",
) -> Any:
    """Compute the gradient of dnn_conv's filters, whose shape is kerns_shp."""
    return abstract_conv.conv2d_grad_wrt_weights(
        img,
        topgrad,
        tuple(kerns_shp[i] for i in range(4)),
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=_flips(conv_mode),
    )


def dnn_gradinput(  # noqa: PLR0913, PLR0917 - the signature of 0.8
    kerns: Any,
    topgrad: Any,
    img_shp: Any,
    border_mode: Any = "valid",
    subsample: tuple[int, int] = (1, 1),
    conv_mode: str = "conv",
) -> Any:
    """Compute the gradient of dnn_conv's images, whose shape is img_shp."""
    return abstract_conv.conv2d_grad_wrt_inputs(
        topgrad,
        kerns,
        tuple(img_shp[i] for i in range(4)),
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=_flips(conv_mode),
    )


def dnn_pool(
    img: Any,
    ws: tuple[int, ...],
    stride: tuple[int, ...] = (1, 1),
    mode: str = "max",
    pad: tuple[int, ...] = (0, 0),
) -> Any:
    """Pool images in len(ws) dimensions, 2 or 3; omit windows that the border cuts."""
    pool = pool_2d if len(ws) == 2 else pool_3d
    return pool(img, ws=ws, ignore_border=True, stride=stride, pad=pad, mode=mode)
