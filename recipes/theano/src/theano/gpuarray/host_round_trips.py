"""Optimizations that remove copies from the device to the host inside a function.

The host waits for each of these copies, so a copy takes longer than the launch of a kernel. Most
copies transfer only shapes, indices and error flags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import theano
from theano import scalar, tensor
from theano.compile.ops import Shape_i
from theano.gof import opt
from theano.gof.graph import Constant
from theano.gpuarray.basic_ops import (
    GpuAllocEmpty,
    GpuContiguous,
    GpuFromHost,
    GpuJoin,
    HostFromGpu,
    as_gpuarray_variable,
)
from theano.gpuarray.blas import GpuGemm, GpuGemv, GpuGer
from theano.gpuarray.elemwise import GpuDimShuffle, GpuElemwise
from theano.gpuarray.opt import (
    _scan_type_infer,
    gpu_reconstruct_graph,
    local_cut_gpu_transfers,
    local_gpu_contiguous_gpu_contiguous,
)
from theano.gpuarray.subtensor import (
    GpuAdvancedIncSubtensor1_dev20,
    GpuIncSubtensor,
    GpuSubtensor,
)
from theano.gpuarray.take_rows import GpuIncrementCheckedRows, GpuTakeCheckedRows, GpuTakeRows
from theano.gpuarray.type import GpuArrayType
from theano.scan_module.scan_op import Scan

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable

# The largest number of elements of a constant that is copied to the host.
MAX_CONSTANT = 4096
# Scalar ops that compute the same integers on the host and on the device, even if they overflow.
EXACT = (
    *(scalar.Add, scalar.Sub, scalar.Mul, scalar.Neg, scalar.Abs, scalar.Sgn),
    *(scalar.Maximum, scalar.Minimum, scalar.Clip, scalar.Switch, scalar.Cast, scalar.Identity),
    *(scalar.EQ, scalar.NEQ, scalar.LT, scalar.GT, scalar.LE, scalar.GE),
    *(scalar.AND, scalar.OR, scalar.XOR, scalar.Invert),
)


def find_owner(variable: Variable, *ops: type) -> Apply | None:
    """Return the node that computes a variable if its op has one of these classes, else None."""
    node = variable.owner
    return node if node is not None and isinstance(node.op, ops) else None


def local_shape_of_transfer(node: Apply) -> list[Variable] | None:
    """Replace the length of a copy on the host by the length of the array on the device."""
    if isinstance(node.op, Shape_i) and (transfer := find_owner(node.inputs[0], HostFromGpu)):
        return [node.op(transfer.inputs[0])]
    return None


def is_integer(variable: Variable) -> bool:
    """Return whether a variable has a type of integers or booleans."""
    return np.dtype(variable.dtype).kind in "biu"


def local_integers_on_host(node: Apply) -> list[Variable] | None:
    """Compute an integer vector or scalar on the host if it depends only on values on the host.

    Theano moves the arithmetic of shapes and indices to the device if an array on the device
    depends on it.
    """
    out = node.outputs[0]
    on_host = compute_on_host(node.inputs[0], {}) if is_integer(out) else None
    return [on_host] if on_host is not None and on_host.type == out.type else None


def compute_on_host(variable: Variable, computed: dict[Variable, Any]) -> Any:
    """Return a variable on the host whose integers equal the integers of a variable on the device.

    Return None if the host cannot compute the integers, or if the host's results could differ from
    the device's results.

    Args:
        variable: a variable on the device. A variable on the host is returned unchanged.
        computed: the results of earlier calls, by variable.
    """
    if not isinstance(variable.type, GpuArrayType):
        return variable
    if variable not in computed:
        computed[variable] = _compute_on_host(variable, computed)
    return computed[variable]


def _compute_on_host(variable: Variable, computed: dict[Variable, Any]) -> Any:
    """Compute a result of compute_on_host that is not in `computed`."""
    node = variable.owner
    if not is_integer(variable):
        return None
    if isinstance(variable, Constant):
        value = np.asarray(variable.data)
        return tensor.constant(value) if value.size <= MAX_CONSTANT else None
    if node is not None and isinstance(node.op, GpuFromHost):
        return node.inputs[0]
    if node is None or variable.ndim > 1 or not is_movable(node.op):
        return None
    arguments = [compute_on_host(argument, computed) for argument in node.inputs]
    if any(argument is None for argument in arguments):
        return None
    return make_host_op(node.op)(*arguments)


def is_exact(op: Any) -> bool:
    """Return whether a scalar op of integers has the same result on the host and on the device.

    Powers are not exact, because they are computed with floating-point numbers. Divisions are not
    exact, because division by zero may differ.
    """
    if isinstance(op, scalar.Composite):
        return all(
            is_exact(node.op) and all(map(is_integer, (*node.inputs, *node.outputs)))
            for node in op.fgraph.apply_nodes
        )
    return isinstance(op, EXACT)


def is_movable(op: Any) -> bool:
    """Return whether ``make_host_op`` supports an op on the device."""
    if isinstance(op, GpuElemwise):
        return not op.inplace_pattern and is_exact(op.scalar_op)
    if isinstance(op, GpuIncSubtensor):
        return not op.inplace
    return isinstance(op, (GpuContiguous, GpuSubtensor, GpuDimShuffle, GpuJoin))


def make_host_op(op: Any) -> Any:
    """Return the op or function on the host that corresponds to an op on the device."""
    if isinstance(op, GpuContiguous):
        return lambda variable: variable
    if isinstance(op, GpuElemwise):
        return tensor.Elemwise(op.scalar_op)
    if isinstance(op, GpuIncSubtensor):
        return tensor.IncSubtensor(op.idx_list, set_instead_of_inc=op.set_instead_of_inc)
    if isinstance(op, GpuSubtensor):
        return tensor.Subtensor(op.idx_list)
    if isinstance(op, GpuDimShuffle):
        return tensor.DimShuffle(op.input_broadcastable, op.new_order)
    return tensor.Join()


def local_check_on_host(node: Apply) -> list[Variable] | None:
    """Check indices on the host if the host can compute them; do not read the error flag."""
    checked: Any
    if type(node.op) is GpuTakeRows:
        checked = GpuTakeCheckedRows()
    elif type(node.op) is GpuAdvancedIncSubtensor1_dev20 and all(
        # For other inputs, GpuAdvancedIncSubtensor1_dev20 runs in Python.
        variable.ndim == 2 and variable.dtype in ("float32", "float64")
        for variable in node.inputs[:2]
    ):
        checked = GpuIncrementCheckedRows(node.op.inplace, node.op.set_instead_of_inc)
    else:
        return None
    on_host = compute_on_host(node.inputs[-1], {})
    if on_host is None:
        return None
    return [checked(*node.inputs, tensor.cast(on_host, "int64"))]


def local_factors_on_device(node: Apply) -> list[Variable] | None:
    """Separate matrix products from the scalars alpha and beta if the device computes a scalar.

    cuBLAS reads alpha and beta from the host's memory. GpuElemwise multiplies by them on the
    device. The results are rounded as in the graph that the user wrote, before Theano moved the
    scalars into the product.
    """
    out = node.outputs[0]
    if node.op.inplace or out.dtype == "float16":
        return None
    factors = [node.inputs[1], *node.inputs[4:]]
    transfers = [find_owner(factor, HostFromGpu) for factor in factors]
    if not any(transfers):
        return None
    values = [
        transfer.inputs[0] if transfer else factor
        for transfer, factor in zip(transfers, factors, strict=True)
    ]
    one = np.asarray(1, out.dtype)
    if isinstance(node.op, GpuGer):
        matrix, _, x, y = node.inputs
        return [node.op(matrix, one, multiply(values[0], x), y)]
    summand, _, first, second, _ = node.inputs
    shape = [Shape_i(axis)(summand) for axis in range(out.ndim)]
    memory = GpuAllocEmpty(out.dtype, out.type.context_name)(*shape)
    product = node.op(memory, one, first, second, one * 0)
    total = add(multiply(values[0], product), multiply(values[1], summand))
    return [total] if total.type == out.type else None


def multiply(factor: Variable, array: Variable) -> Variable | None:
    """Return a scalar times an array on the device.

    Return the array if the scalar is the constant 1, and None if the scalar is the constant 0.
    """
    if isinstance(factor, Constant) and factor.data in (0, 1):
        return array if factor.data else None
    factor = as_gpuarray_variable(factor, array.type.context_name)
    factor = GpuDimShuffle((), ("x",) * array.ndim)(factor)
    product: Variable = GpuElemwise(scalar.mul)(factor, array)
    return product


def add(x: Variable | None, y: Variable | None) -> Any:
    """Return the sum of two arrays on the device. An argument None means 0."""
    if x is None or y is None:
        return y if x is None else x
    return GpuElemwise(scalar.add)(x, y)


class IntegersToScans(opt.Optimizer):
    """Replace integer non-sequences of scans by variables that the host computes, if possible.

    The steps of a scan may need the integers on the host, as shapes or as bounds of slices.
    """

    def add_requirements(self, fgraph: Any) -> None:
        """Attach validation of replacements."""
        fgraph.attach_feature(theano.gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: Any) -> None:
        """Change the inputs of all scans over arrays on a device."""
        for node in fgraph.toposort():
            if isinstance(node.op, Scan) and node.op.info.get("gpua"):
                self._change(fgraph, node)

    @staticmethod
    def _change(fgraph: Any, node: Apply) -> None:
        """Replace a scan by a scan whose integer inputs are on the host."""
        inner, outputs = gpu_reconstruct_graph(node.op.inputs, node.op.outputs)
        outer = list(node.inputs)
        n_before = 1 + node.op.n_seqs + node.op.n_outs + node.op.n_shared_outs
        replaced = {}
        # The last inner inputs and the last outer inputs are the non-sequences, in the same order.
        # So a negative index selects an inner input and its outer input.
        for i in range(n_before + node.op.n_nit_sot - len(outer), 0):
            variable = inner[i]
            if not isinstance(variable.type, GpuArrayType) or not is_integer(variable):
                continue
            on_host = compute_on_host(outer[i], {}) if variable.ndim <= 1 else None
            if on_host is None or on_host.broadcastable != variable.broadcastable:
                continue
            inner[i], outer[i] = on_host.type(), on_host
            replaced[variable] = GpuFromHost(variable.type.context_name)(inner[i])
        if not replaced:
            return
        outputs = theano.clone(outputs, replace=replaced)
        # Hash the graph as Theano does when it moves a scan to the device, because the scan's own
        # hash does not describe arrays on the device.
        graph = theano.gof.FunctionGraph(*gpu_reconstruct_graph(inner, outputs), clone=True)
        info = {**node.op.info, "gpu_hash": hash(theano.gof.CLinker().cmodule_key_(graph, []))}
        op = Scan(inner, outputs, info, typeConstructor=_scan_type_infer(node))
        new = op(*outer, return_list=True)
        if [v.type for v in new] == [v.type for v in node.outputs]:
            fgraph.replace_all_validate(
                list(zip(node.outputs, new, strict=True)), reason="IntegersToScans"
            )


REWRITES = (
    (local_shape_of_transfer, [Shape_i]),
    (local_integers_on_host, [HostFromGpu]),
    (local_check_on_host, [GpuTakeRows, GpuAdvancedIncSubtensor1_dev20]),
    (local_factors_on_device, [GpuGemv, GpuGemm, GpuGer]),
)

theano.compile.optdb.register(
    # Its position, 48.9, is between the transfers to the device (48.5) and Theano's fusion of
    # elementwise operations (49).
    "gpua_host_round_trips",
    theano.gof.EquilibriumOptimizer(
        [
            *(opt.local_optimizer(tracks)(rewrite) for rewrite, tracks in REWRITES),
            local_cut_gpu_transfers,
            # GpuTakeCheckedRows.make_node makes a second GpuContiguous.
            local_gpu_contiguous_gpu_contiguous,
        ],
        max_use_ratio=10,
    ),
    48.9,
    "fast_run",
    "gpuarray",
)
theano.compile.optdb.register(
    "gpua_integers_to_scans", IntegersToScans(), 48.91, "fast_run", "gpuarray", "scan"
)
