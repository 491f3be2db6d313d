"""Pooling functions and ops of Theano 0.6 to 0.9, with their old names of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theano.tensor.signal import pool
from theano.tensor.signal.pool import max_pool_2d_same_size

__all__ = [
    "AveragePoolGrad",
    "DownsampleFactorMax",
    "DownsampleFactorMaxGrad",
    "DownsampleFactorMaxGradGrad",
    "MaxPoolGrad",
    "max_pool2D",
    "max_pool_2d",
    "max_pool_2d_same_size",
]


def max_pool_2d(  # noqa: PLR0913, PLR0917 - the signature of Theano 0.8
    input: Any,
    ds: Sequence[int],
    ignore_border: bool | None = None,
    st: Sequence[int] | None = None,
    padding: Sequence[int] = (0, 0),
    mode: str = "max",
) -> Any:
    """Pool the last two dimensions of a tensor by calling pool.pool_2d.

    Args:
        input: the tensor.
        ds: the size of the window, (rows, columns).
        ignore_border: whether to omit windows that extend beyond the border.
        st: the strides, (rows, columns); by default, the size of the window.
        padding: the numbers of zeros added on each side, (rows, columns).
        mode: "max", "sum", "average_inc_pad" or "average_exc_pad".
    """
    return pool.pool_2d(
        input, ws=ds, ignore_border=ignore_border, stride=st, pad=padding, mode=mode
    )


def max_pool2D(*arguments: Any, **options: Any) -> Any:
    """Call max_pool_2d; max_pool2D is its name in Theano 0.5."""
    return max_pool_2d(*arguments, **options)


class _Pooling:
    """Base class of the pooling ops of Theano 0.8.

    They store the window, stride and padding, which are inputs of the ops of Theano 1.0.
    """

    def __init__(
        self,
        ds: Sequence[int],
        ignore_border: bool = False,
        st: Sequence[int] | None = None,
        padding: Sequence[int] = (0, 0),
        mode: str = "max",
    ) -> None:
        """Store arguments of max_pool_2d."""
        self.ds = tuple(ds)
        self.ignore_border = ignore_border
        self.st = self.ds if st is None else tuple(st)
        self.padding = tuple(padding)
        self.mode = mode

    def _apply(self, op: type, *inputs: Any) -> Any:
        """Apply an op of theano.tensor.signal.pool to inputs, with the stored arguments."""
        make: Any = op
        options = {} if op is pool.MaxPoolGrad else {"mode": self.mode}
        return make(ignore_border=self.ignore_border, **options)(
            *inputs, ws=self.ds, stride=self.st, pad=self.padding
        )


class DownsampleFactorMax(_Pooling):
    """Pool the last two dimensions of a tensor."""

    @staticmethod
    def out_shape(
        imgshape: Sequence[Any],
        ds: Sequence[int],
        ignore_border: bool = False,
        st: Sequence[int] | None = None,
        padding: Sequence[int] = (0, 0),
    ) -> Any:
        """Return the shape of the output for an input of the shape `imgshape`."""
        return pool.Pool.out_shape(
            imgshape, ws=ds, ignore_border=ignore_border, stride=st, pad=padding
        )

    def __call__(self, x: Any) -> Any:
        """Return the pooled tensor."""
        return self._apply(pool.Pool, x)


class MaxPoolGrad(_Pooling):
    """Compute the gradient of max pooling."""

    def __call__(self, x: Any, maxout: Any, gz: Any) -> Any:
        """Return the gradient with respect to x.

        Args:
            x: the input of the pooling.
            maxout: the output of the pooling.
            gz: the gradient with respect to maxout.
        """
        return self._apply(pool.MaxPoolGrad, x, maxout, gz)


class AveragePoolGrad(_Pooling):
    """Compute the gradient of pooling by averages or sums."""

    def __init__(
        self,
        ds: Sequence[int],
        ignore_border: bool,
        st: Sequence[int] | None = None,
        padding: Sequence[int] = (0, 0),
        mode: str = "average_inc_pad",
    ) -> None:
        """Store arguments of max_pool_2d."""
        super().__init__(ds, ignore_border, st, padding, mode)

    def __call__(self, x: Any, gz: Any, dummy: Any = None) -> Any:
        """Return the gradient with respect to the input x; ignore `dummy`.

        Args:
            x: the input of the pooling.
            gz: the gradient with respect to the output.
            dummy: ignored; at this position, MaxPoolGrad takes the output of the pooling.
        """
        return self._apply(pool.AveragePoolGrad, x, gz)


class DownsampleFactorMaxGradGrad(_Pooling):
    """Compute the gradient of MaxPoolGrad."""

    def __call__(self, x: Any, maxout: Any, gz: Any) -> Any:
        """Return the gradient with respect to gz, the third input of MaxPoolGrad.

        Args:
            x: the first input of MaxPoolGrad.
            maxout: the second input of MaxPoolGrad.
            gz: the gradient with respect to the output of MaxPoolGrad.
        """
        return self._apply(pool.DownsampleFactorMaxGradGrad, x, maxout, gz)


def DownsampleFactorMaxGrad(
    ds: Sequence[int],
    ignore_border: bool,
    st: Sequence[int] | None = None,
    padding: Sequence[int] = (0, 0),
    mode: str = "max",
) -> MaxPoolGrad | AveragePoolGrad:
    """Return the op that computes the gradient of pooling in a mode; see max_pool_2d."""
    op = MaxPoolGrad if mode == "max" else AveragePoolGrad
    return op(ds, ignore_border, st, padding, mode)
