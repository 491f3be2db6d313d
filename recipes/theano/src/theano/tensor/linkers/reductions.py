"""The loops of a CAReduce, compiled alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from theano import config, scalar
from theano.gof.ahead import is_known
from theano.gof.cc import linker_types
from theano.tensor import elemwise
from theano.tensor import loops_cgen as cgen
from theano.tensor.linkers.loops import LoopsLinker
from theano.tensor.linkers.modules import MATH, Loops, needs_more
from theano.tensor.type import TensorType


class ReductionLinker(LoopsLinker):
    """Compile a CAReduce's loops, where they need neither Python nor NumPy."""

    def make_loops(self) -> Loops | None:
        """Make what loops() returns."""
        (node,) = self.node_order
        op, scalar_op = node.op, node.op.scalar_op
        axes = range(node.inputs[0].ndim) if op.axis is None else op.axis
        if self.no_recycling or not config.check_input or not len(axes) or not is_known(scalar_op):
            return None
        input, output = node.inputs + node.outputs
        acc_dtype = getattr(op, "acc_dtype", None) or output.dtype
        first = identity(scalar_op, input.dtype)
        if first is None:
            return None
        dtype, acc = (TensorType(each, ()).dtype_specs()[1] for each in (input.dtype, acc_dtype))
        task = op.task_code(node, "acc_i", "x_i", {"fail": "{return -1;}"})
        if needs_more([task, dtype, acc]):
            return None
        number = literal(np.asarray(first).astype(acc_dtype), acc)
        reduced = "".join("01"[i in axes] for i in range(input.ndim))
        table = self.table(
            [input],
            [output],
            cgen.make_reduction(dtype, acc, f"{{{task}}}\n"),
            like=0,
            reduced=reduced,
            type=np.dtype(acc_dtype).num,
            fill=f"""
    for (npy_intp i = 0; i < n; i++)
        (({acc} *)data)[i] = {number};
""",
            not_empty="" if hasattr(scalar_op, "identity") else type(scalar_op).__name__.lower(),
        )
        return Loops([MATH], [], table)


def identity(scalar_op: Any, dtype: str) -> Any:
    """Return what is accumulated before the first element of a type, or None."""
    if hasattr(scalar_op, "identity"):
        return scalar_op.identity
    sign = {scalar.maximum: -1, scalar.minimum: 1}.get(scalar_op)
    kind = np.dtype(dtype).kind
    if sign is None or kind == "c":
        return None
    if kind == "f":
        return sign * np.inf
    if kind == "b":
        return sign > 0
    return getattr(np.iinfo(dtype), "max" if sign > 0 else "min")


def literal(value: np.ndarray, ctype: str) -> str:
    """Return C code of a number: an array without dimensions, of such a C type."""
    if value.dtype.kind != "f":
        return f"({ctype})0x{int(value) % 2**64:x}ull"
    if np.isinf(value):
        return ("-" if value < 0 else "") + "__builtin_inf()"
    return repr(float(value))


linker_types.update(
    (op, ReductionLinker)
    for op in (
        elemwise.All,
        elemwise.Any,
        elemwise.CAReduce,
        elemwise.Prod,
        elemwise.ProdWithoutZeros,
        elemwise.Sum,
    )
)
