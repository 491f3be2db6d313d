"""Table of the scalar ops that are inverse functions of each other."""

from __future__ import annotations

from theano.scalar import basic

INVERSE_PAIRS = (
    (basic.Deg2Rad, basic.Rad2Deg),
    (basic.Cosh, basic.ArcCosh),
    (basic.Tanh, basic.ArcTanh),
    (basic.Sinh, basic.ArcSinh),
    (basic.Conj, basic.Conj),
    (basic.Neg, basic.Neg),
    (basic.Inv, basic.Inv),
)
# The ops of all pairs.
INVERTIBLE = tuple(op for pair in INVERSE_PAIRS for op in pair)
