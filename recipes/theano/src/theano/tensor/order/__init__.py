"""Proofs about integer variables that hold for all shapes, and simplifications by these proofs.

Graphs compute lengths and ends of slices from shapes, with comparisons. Many comparisons have the
same outcome for all shapes: n + 1 < 0 is always false. Such comparisons must be simplified
immediately, because otherwise slices of slices nest them.

`linear_sums` adds linear combinations of terms. `integers` represents integer variables as linear
sums. `proofs` proves that sums are not negative. `length_tables` tabulates integers that depend on
one length only. `simplification` replaces variables by simpler variables. `slices` makes canonical
slices. `formulas` reuses the results for isomorphic graphs.
"""

from theano.tensor.order.formulas import reuse_formulas
from theano.tensor.order.simplification import Order, make_switch, simplify
from theano.tensor.order.slices import make_canonical_slice

__all__ = ["Order", "make_canonical_slice", "make_switch", "reuse_formulas", "simplify"]
