"""3-D convolutions of Theano 0.6 to 0.9, computed by theano.tensor.nnet.abstract_conv.

Their tensors have the shape (batch, rows, columns, time, channels).
"""

from __future__ import annotations

from typing import Any

from theano import tensor
from theano.tensor.nnet.abstract_conv import (
    conv3d,
    conv3d_grad_wrt_inputs,
    conv3d_grad_wrt_weights,
)

# Arguments of dimshuffle: from the old order of dimensions to abstract_conv's order, and back.
CHANNELS_SECOND = (0, 4, 1, 2, 3)
CHANNELS_LAST = (0, 2, 3, 4, 1)


def read_strides(d: Any) -> tuple[int, ...]:
    """Return strides as integers.

    Args:
        d: integers, or a constant vector.

    Raises:
        NotScalarConstantError: the vector is not constant.
    """
    if not isinstance(d, tensor.Variable):
        return tuple(int(stride) for stride in d)
    return tuple(int(tensor.get_scalar_constant_value(d[i])) for i in range(3))


def conv3D(V: Any, W: Any, b: Any, d: Any) -> Any:
    """Convolve videos with filters, without flipping the filters, and add a bias.

    Args:
        V: the input, (batch, rows, columns, time, input channels).
        W: the filters, (output channels, rows, columns, time, input channels).
        b: the bias, (output channels,).
        d: the strides of rows, columns and time; constants.
    """
    V, W = tensor.as_tensor_variable(V), tensor.as_tensor_variable(W)
    output = conv3d(
        V.dimshuffle(*CHANNELS_SECOND),
        W.dimshuffle(*CHANNELS_SECOND),
        subsample=read_strides(d),
        filter_flip=False,
    )
    return output.dimshuffle(*CHANNELS_LAST) + b


def convTransp3D(W: Any, b: Any, d: Any, H: Any, RShape: Any = None) -> Any:
    """Compute a transposed convolution: multiply by the transpose of conv3D's matrix, add a bias.

    Args:
        W: the filters of conv3D.
        b: the bias, (input channels,).
        d: the strides of rows, columns and time; constants.
        H: an array of the shape of conv3D's output.
        RShape: the result's lengths (rows, columns, time). By default, and for lengths of -1, the
            smallest possible lengths.
    """
    W, H = tensor.as_tensor_variable(W), tensor.as_tensor_variable(H)
    steps = read_strides(d)
    sizes = [(H.shape[i + 1] - 1) * steps[i] + W.shape[i + 1] for i in range(3)]
    if RShape is not None:
        # This also handles -1, which stands for the smallest possible length.
        sizes = [tensor.maximum(size, RShape[i]) for i, size in enumerate(sizes)]
    result = conv3d_grad_wrt_inputs(
        H.dimshuffle(*CHANNELS_SECOND),
        W.dimshuffle(*CHANNELS_SECOND),
        (None, None, *sizes),
        subsample=steps,
        filter_flip=False,
    )
    return result.dimshuffle(*CHANNELS_LAST) + b


def convGrad3D(V: Any, d: Any, WShape: Any, dCdH: Any) -> Any:
    """Compute the gradient with respect to conv3D's filters.

    Args:
        V: the input of conv3D.
        d: the strides of rows, columns and time; constants.
        WShape: the shape of the filters.
        dCdH: the gradient with respect to the output.
    """
    V, dCdH = tensor.as_tensor_variable(V), tensor.as_tensor_variable(dCdH)
    gradient = conv3d_grad_wrt_weights(
        V.dimshuffle(*CHANNELS_SECOND),
        dCdH.dimshuffle(*CHANNELS_SECOND),
        (None, None, *(WShape[i] for i in (1, 2, 3))),
        subsample=read_strides(d),
        filter_flip=False,
    )
    return gradient.dimshuffle(*CHANNELS_LAST)


def Conv3D() -> Any:
    """Return conv3D, which was an instance of the op class Conv3D in Theano 0.6 to 0.9."""
    return conv3D
