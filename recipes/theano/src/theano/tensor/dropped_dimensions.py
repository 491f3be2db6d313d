"""Choice to keep or drop the dimensions after the last index of an index with numpy.newaxis.

NumPy keeps the dimensions after the last index: if x has shape (n, 1), x[:, None] has shape
(n, 1, 1). If all of these dimensions are broadcastable, Theano 1.0.5 drops them: x[:, None] has
shape (n, 1). Programs such as nematus depend on this. If one of these dimensions is not
broadcastable, Theano 1.0.5 raises an error, and this distribution follows NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from theano import config


def remaining_dimensions(broadcastable: Sequence[bool], indexed: int) -> Sequence[int]:
    """Return the dimensions after the last index that the result keeps.

    Warn if Theano 1.0.5 and NumPy keep different dimensions and the flag numpy_newaxis is
    False. The warning names the line that calls TensorVariable.__getitem__.

    Args:
        broadcastable: the broadcastable pattern of the indexed variable.
        indexed: the number of dimensions of the variable that the index mentions.
    """
    remaining = range(indexed, len(broadcastable))
    if not remaining or config.numpy_newaxis or not all(broadcastable[indexed:]):
        return remaining
    warnings.warn(
        f"None in an index drops the {len(remaining)} broadcastable dimension(s) after the last"
        " index, as in Theano 1.0.5; NumPy keeps them. Write x.dimshuffle(...) to be clear, or set"
        " the flag numpy_newaxis=True to keep them.",
        stacklevel=3,
    )
    return ()
