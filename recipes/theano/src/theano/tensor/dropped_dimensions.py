"""Choice to keep or drop dimensions that an index expression with numpy.newaxis does not index.

An index expression indexes the first dimensions. NumPy keeps the remaining dimensions: if x has
shape (n, 1), x[:, None] has shape (n, 1, 1). Theano 1.0.5 drops the remaining dimensions if all of
them are broadcastable: x[:, None] has shape (n, 1). Programs such as nematus depend on this. If a
remaining dimension is not broadcastable, Theano 1.0.5 raises an error. This distribution then
follows NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from theano import config


def list_kept_dimensions(broadcastable: Sequence[bool], n_indexed: int) -> Sequence[int]:
    """Return the remaining dimensions that the result keeps.

    Warn if Theano 1.0.5 and NumPy keep different dimensions and the flag numpy_newaxis is
    False. The warning names the line that calls TensorVariable.__getitem__.

    Args:
        broadcastable: the broadcastable pattern of the indexed variable.
        n_indexed: the number of dimensions that the index expression indexes.
    """
    remaining = range(n_indexed, len(broadcastable))
    if not remaining or config.numpy_newaxis or not all(broadcastable[n_indexed:]):
        return remaining
    warnings.warn(
        f"None in an index drops the {len(remaining)} broadcastable dimension(s) after the last"
        " index, as in Theano 1.0.5; NumPy keeps them. Write x.dimshuffle(...) to be clear, or set"
        " the flag numpy_newaxis=True to keep them.",
        stacklevel=3,
    )
    return ()
