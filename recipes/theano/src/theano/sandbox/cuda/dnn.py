"""Functions of theano.sandbox.cuda.dnn, computed by theano.tensor with or without a GPU.

If theano.gpuarray uses a device, Theano's optimizers replace the functions' ops with cuDNN's. A
call of an op of the old module, such as GpuDnnConv, raises an error that names the replacement.
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


def _flips_filters(conv_mode: str) -> bool:
    """Return whether a conv_mode of dnn_conv flips the filters.

    Raises:
        ValueError: the mode is neither "conv" nor "cross".
    """
    if conv_mode not in ("conv", "cross"):
        raise ValueError(f"conv_mode must be 'conv' or 'cross', not {conv_mode!r}")
    return conv_mode == "conv"


def dnn_conv(  # noqa: PLR0913, PLR0917 - the signature of Theano 0.8
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
    """Convolve images with filters.

    The last four arguments chose the algorithm of cuDNN. They are ignored.

    Args:
        img: the images, of shape (batch, channels, rows, columns).
        kerns: the filters, of shape (output channels, channels, rows, columns).
        border_mode: "valid", "full", "half", or the number of zeros added on each side.
        subsample: the strides of rows and columns.
        conv_mode: "conv" flips the filters, "cross" does not.
        direction_hint: ignored.
        workmem: ignored.
        algo: ignored.
        precision: ignored.
    """
    flip = _flips_filters(conv_mode)
    return conv2d(img, kerns, border_mode=border_mode, subsample=subsample, filter_flip=flip)


def dnn_conv3d(  # noqa: PLR0913, PLR0917 - the signature of Theano 0.8
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
    """Convolve 3-D images with 3-D filters.

    The arguments are as for dnn_conv, but images and filters have a third spatial dimension at the
    end, and subsample has three strides.
    """
    flip = _flips_filters(conv_mode)
    return abstract_conv.conv3d(
        img, kerns, border_mode=border_mode, subsample=subsample, filter_flip=flip
    )


def dnn_gradweight(  # noqa: PLR0913, PLR0917 - the signature of Theano 0.8
    img: Any,
    topgrad: Any,
    kerns_shp: Any,
    border_mode: Any = "valid",
    subsample: tuple[int, int] = (1, 1),
    conv_mode: str = "conv",
) -> Any:
    """Compute the gradient with respect to the filters of dnn_conv.

    Args:
        img: the images.
        topgrad: the gradient with respect to dnn_conv's output.
        kerns_shp: the shape of the filters, four lengths.
        border_mode: as for dnn_conv.
        subsample: as for dnn_conv.
        conv_mode: as for dnn_conv.
    """
    return abstract_conv.conv2d_grad_wrt_weights(
        img,
        topgrad,
        tuple(kerns_shp[i] for i in range(4)),
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=_flips_filters(conv_mode),
    )


def dnn_gradinput(  # noqa: PLR0913, PLR0917 - the signature of Theano 0.8
    kerns: Any,
    topgrad: Any,
    img_shp: Any,
    border_mode: Any = "valid",
    subsample: tuple[int, int] = (1, 1),
    conv_mode: str = "conv",
) -> Any:
    """Compute the gradient with respect to the images of dnn_conv.

    Args:
        kerns: the filters.
        topgrad: the gradient with respect to dnn_conv's output.
        img_shp: the shape of the images, four lengths.
        border_mode: as for dnn_conv.
        subsample: as for dnn_conv.
        conv_mode: as for dnn_conv.
    """
    return abstract_conv.conv2d_grad_wrt_inputs(
        topgrad,
        kerns,
        tuple(img_shp[i] for i in range(4)),
        border_mode=border_mode,
        subsample=subsample,
        filter_flip=_flips_filters(conv_mode),
    )


def dnn_pool(
    img: Any,
    ws: tuple[int, ...],
    stride: tuple[int, ...] = (1, 1),
    mode: str = "max",
    pad: tuple[int, ...] = (0, 0),
) -> Any:
    """Pool the last 2 or 3 dimensions of images; omit windows that extend beyond the border.

    Args:
        img: the images, whose last len(ws) dimensions are pooled.
        ws: the size of the windows: 2 or 3 lengths.
        stride: the strides of the windows.
        mode: "max", "sum", "average_inc_pad" or "average_exc_pad".
        pad: the number of zeros added on each side.
    """
    pool = pool_2d if len(ws) == 2 else pool_3d
    return pool(img, ws=ws, ignore_border=True, stride=stride, pad=pad, mode=mode)
