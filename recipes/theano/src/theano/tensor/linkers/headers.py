"""Table of the headers that the C code of scalar ops needs."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from theano import scalar
from theano.tensor import elemwise

if TYPE_CHECKING:
    from theano.gof import Variable

MATH, PYTHON = "<math.h>", "<Python.h>"
SIGNED = ("int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
# The dtypes whose C types theano_loops.h declares.
DTYPES = {"bool", *SIGNED, "uint8", "uint16", "uint32", "uint64", *FLOATS}


@functools.cache
def list_math_dtypes() -> dict[type, Collection[str]]:
    """Map classes of scalar ops to the common dtypes of operands for which they need <math.h>.

    For other dtypes of DTYPES, theano_loops.h declares all names in the C code and the support code
    of the op. A class that is not in the table needs a complete module.
    """
    # Theano imports these modules after this module.
    from theano.tensor import xlogx  # noqa: PLC0415
    from theano.tensor.nnet import nnet, sigm  # noqa: PLC0415

    never = (
        *(scalar.EQ, scalar.GE, scalar.GT, scalar.InRange, scalar.LE, scalar.LT, scalar.NEQ),
        *(scalar.AND, scalar.Invert, scalar.OR, scalar.XOR),
        *(scalar.Cast, scalar.Conj, scalar.Identity, scalar.Second, scalar.Switch),
        *(scalar.Clip, scalar.Maximum, scalar.Minimum, scalar.Neg, scalar.Sgn),
        *(scalar.Add, scalar.Inv, scalar.Mod, scalar.Mul, scalar.Sub, scalar.TrueDiv),
        *(scalar.Ceil, scalar.Floor, scalar.RoundHalfAwayFromZero, scalar.Trunc),
        *(scalar.Exp, scalar.Exp2, scalar.Expm1, scalar.Pow, scalar.Sqr, scalar.Sqrt),
        *(scalar.Log, scalar.Log10, scalar.Log1p, scalar.Log2),
        *(scalar.Cos, scalar.Cosh, scalar.Sin, scalar.Sinh, scalar.Tan, scalar.Tanh),
        *(scalar.ArcCos, scalar.ArcCosh, scalar.ArcSin, scalar.ArcSinh),
        *(scalar.ArcTan, scalar.ArcTan2, scalar.ArcTanh, scalar.Erf, scalar.Erfc),
        *(elemwise.MulWithoutZeros, xlogx.XlogX, xlogx.XlogY0),
        *(nnet.ScalarSoftsign, sigm.ScalarSigmoid, sigm.ScalarSoftplus),
    )
    always = (
        *(scalar.Deg2Rad, scalar.Rad2Deg, scalar.J0, scalar.J1),
        *(scalar.Gamma, scalar.GammaLn, scalar.Psi, scalar.TriGamma),
        sigm.UltraFastScalarSigmoid,
    )
    return {
        **dict.fromkeys(never, ()),
        **dict.fromkeys(always, DTYPES),
        scalar.Abs: SIGNED,
        scalar.IntDiv: ("float32",),
        scalar.IsInf: FLOATS,
        scalar.IsNan: FLOATS,
    }


def get_dtypes(variables: Iterable[Variable]) -> list[str]:
    """Return the dtypes of variables."""
    return [variable.dtype for variable in variables]


def find_headers(op: Any, operands: Iterable[str], variables: Iterable[str]) -> set[str]:
    """Return the headers that the C code of a scalar op needs in addition to theano_loops.h.

    Args:
        op: the scalar op.
        operands: the dtypes of the op's operands.
        variables: the dtypes of the variables that the loops declare. Constants are literals.

    Returns:
        A subset of MATH and PYTHON. It contains PYTHON if the op needs a complete module.
    """
    if not DTYPES.issuperset(variables):
        return {PYTHON}
    if isinstance(op, scalar.Composite):
        headers: set[str] = set()
        for node in op.fgraph.apply_nodes:
            headers |= find_headers(node.op, get_dtypes(node.inputs), get_dtypes(node.outputs))
        return headers
    dtypes = list_math_dtypes().get(type(op))
    if dtypes is None:
        return {PYTHON}
    return {MATH} if dtypes and scalar.upcast(*operands) in dtypes else set()
