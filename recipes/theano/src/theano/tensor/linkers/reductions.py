"""Linker that compiles only the loops of a CAReduce, not the thunk around them."""

from __future__ import annotations

from typing import Any

import numpy as np
from theano import config, scalar
from theano.gof.linker_parts import computed_once, is_builtin, linker_types
from theano.tensor import elemwise
from theano.tensor import loops_cgen as cgen
from theano.tensor.linkers.headers import PYTHON, find_headers
from theano.tensor.linkers.loop_modules import Loops
from theano.tensor.linkers.loops import LoopsLinker
from theano.tensor.type import TensorType


class ReductionLinker(LoopsLinker):
    """Compile only the loops of a CAReduce, if they use neither Python nor NumPy."""

    @computed_once
    def make_loops(self) -> Loops | None:
        """Generate the loops; return None if the op needs a complete module."""
        (node,) = self.node_order
        op, scalar_op = node.op, node.op.scalar_op
        axes = range(node.inputs[0].ndim) if op.axis is None else op.axis
        if (
            self.no_recycling
            or not config.check_input
            or not len(axes)
            or not is_builtin(scalar_op)
        ):
            return None
        input, output = node.inputs + node.outputs
        acc_dtype = getattr(op, "acc_dtype", None) or output.dtype
        initial_value = find_initial_value(scalar_op, input.dtype)
        if initial_value is None:
            return None
        dtype, acc = (TensorType(name, ()).dtype_specs()[1] for name in (input.dtype, acc_dtype))
        task = op.task_code(node, "acc_i", "x_i", {"fail": "{return -1;}"})
        dtypes = (acc_dtype, input.dtype)
        headers = find_headers(scalar_op, dtypes, dtypes)
        if PYTHON in headers:
            return None
        number = make_literal(np.asarray(initial_value).astype(acc_dtype), acc)
        reduced = "".join("01"[i in axes] for i in range(input.ndim))
        description = self.describe_op(
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
        return Loops(sorted(headers), [], description)


def find_initial_value(scalar_op: Any, dtype: str) -> Any:
    """Return the initial value of a reduction over elements of a dtype, or None if unknown."""
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


def make_literal(value: np.ndarray, ctype: str) -> str:
    """Return the value of a 0-d array as a C literal of the type `ctype`."""
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
