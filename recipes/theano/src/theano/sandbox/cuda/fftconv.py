"""Function conv2d_fft of theano.sandbox.cuda.fftconv, computed by theano.tensor.nnet.conv2d."""

from __future__ import annotations

from typing import Any

from theano.tensor.nnet import conv2d

__all__ = ["conv2d_fft"]


def conv2d_fft(  # noqa: PLR0913, PLR0917 - the signature of Theano 0.8
    input: Any,
    filters: Any,
    image_shape: tuple[int | None, ...] | None = None,
    filter_shape: tuple[int | None, ...] | None = None,
    border_mode: str = "valid",
    pad_last_dim: bool = False,
) -> Any:
    """Convolve images with flipped filters.

    Args:
        input: the images, of shape (batch, channels, rows, columns).
        filters: the filters, of shape (output channels, channels, rows, columns).
        image_shape: the shape of the images, with None for unknown lengths; or None.
        filter_shape: the shape of the filters, with None for unknown lengths; or None.
        border_mode: "valid" or "full".
        pad_last_dim: ignored; it chose the length of the Fourier transform.
    """
    return conv2d(input, filters, image_shape, filter_shape, border_mode=border_mode)
