"""Compute the convolution of theano.sandbox.cuda.fftconv by theano.tensor.nnet."""

from __future__ import annotations

from typing import Any

from theano.tensor.nnet import conv2d

__all__ = ["conv2d_fft"]


def conv2d_fft(  # noqa: PLR0913, PLR0917 - the signature of 0.8
    input: Any,
    filters: Any,
    image_shape: tuple[int | None, ...] | None = None,
    filter_shape: tuple[int | None, ...] | None = None,
    border_mode: str = "valid",
    pad_last_dim: bool = False,
) -> Any:
    """Convolve images with flipped filters. Ignore pad_last_dim, which chose a transform's length.

    Args:
        input: (batch, channels, rows, columns).
        filters: (output channels, channels, rows, columns).
        border_mode: "valid" or "full".
    """
    return conv2d(input, filters, image_shape, filter_shape, border_mode=border_mode)
