"""Computation of a scalar op's output dtypes, without an Apply node if possible."""

from __future__ import annotations

from collections.abc import Sequence

from theano.scalar.basic import Composite, ScalarOp, get_scalar_type


def find_output_dtypes(op: ScalarOp, dtypes: Sequence[str]) -> list[str]:
    """Return the dtypes of a scalar op's outputs for the dtypes of its inputs.

    Raises:
        TypeError: the op does not accept inputs of these dtypes.
    """
    types = [get_scalar_type(dtype) for dtype in dtypes]
    # If the op does not override make_node, output_types determines the types of its outputs.
    if getattr(op.make_node, "__func__", None) is ScalarOp.make_node and op.nin in (-1, len(types)):
        outputs = op.output_types(types)
        if len(outputs) == op.nout:
            return [output_type.dtype for output_type in outputs]
    if isinstance(op, Composite) and op.inputs_type == tuple(types):
        return [output_type.dtype for output_type in op.outputs_type]
    node = op.make_node(*[input_type.make_variable() for input_type in types])
    return [output.type.dtype for output in node.outputs]
