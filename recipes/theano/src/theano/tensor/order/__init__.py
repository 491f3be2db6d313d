"""What is known of the order of integers before any value is.

Lengths, and the ends of slices, are computed from shapes, with comparisons of which many have the
same outcome for all shapes: that n + 1 is less than 0, for one. Who builds a graph from such
comparisons has them built on one another.

`sums` counts in sums of terms; `integers` has variables as sums, `proofs` what follows for them,
`tables` what is computed from one length alone, and `answers` what that makes of a graph.
"""

from theano.tensor.order.answers import Order

__all__ = ["Order"]
