"""What scalar ops make of dtypes."""

from __future__ import annotations

from collections.abc import Sequence

from theano.scalar.basic import ScalarOp, get_scalar_type


def output_dtypes(op: ScalarOp, dtypes: Sequence[str]) -> list[str]:
    """Return the dtypes of a scalar op's outputs for inputs of some dtypes.

    Raises:
        TypeError: there is no such node.
    """
    types = [get_scalar_type(dtype) for dtype in dtypes]
    # No node is needed where it would only ask this.
    if getattr(op.make_node, "__func__", None) is ScalarOp.make_node and op.nin in (-1, len(types)):
        outputs = op.output_types(types)
        if len(outputs) == op.nout:
            return [each.dtype for each in outputs]
    node = op.make_node(*[each.make_variable() for each in types])
    return [each.type.dtype for each in node.outputs]
