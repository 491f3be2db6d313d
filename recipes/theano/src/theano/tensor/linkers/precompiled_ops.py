"""Linker of ops whose complete thunks thunks_ext.cpp contains, compiled with the package."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from theano.compile import ops
from theano.gof.cc import CLinker
from theano.gof.graph import Apply
from theano.gof.linker_parts import computed_once, linker_types
from theano.gof.type import Type
from theano.scalar import Scalar
from theano.tensor import basic, blas_c, elemwise, opt, subtensor, thunks_ext
from theano.tensor.join_as import JoinAs
from theano.tensor.linkers.threads import HAS_KERNELS
from theano.tensor.nnet.corr import BaseCorrMM, CorrMM, CorrMM_gradInputs, CorrMM_gradWeights
from theano.tensor.signal.pool import AveragePoolGrad, MaxPoolGrad, Pool
from theano.tensor.type import TensorType

# The kinds of numbers in an encoded index. thunks/subtensor.h defines the same constants.
NONE, LITERAL, INPUT = range(3)

CORRELATIONS = (CorrMM, CorrMM_gradInputs, CorrMM_gradWeights)
POOLINGS = (AveragePoolGrad, MaxPoolGrad, Pool)

# The modes of poolings; window_layout in thunks/pooling.h defines the same numbers.
POOLING_MODES = ("max", "sum", "average_exc_pad", "average_inc_pad")


def encode_index(entries: Sequence[Any], first_input: int) -> list[int]:
    """Encode a Subtensor's idx_list as the integers that make_view of thunks_ext.cpp reads.

    Args:
        entries: the idx_list: slices and integers. A Type in place of an integer represents an
            input of the node.
        first_input: the number of the input that the first Type represents.

    Returns:
        The number of entries. Then, for each entry, 1 and its start, stop and step if it is a
        slice, or 0 and its index. Each start, stop, step and index is a pair: NONE and 0, LITERAL
        and the integer, or INPUT and the number of the input.
    """
    numbers = [len(entries)]
    inputs = itertools.count(first_input)

    def add(entry: Any) -> None:
        if entry is None:
            numbers.extend((NONE, 0))
        elif isinstance(entry, Type):
            numbers.extend((INPUT, next(inputs)))
        else:
            numbers.extend((LITERAL, int(entry)))

    for entry in entries:
        numbers.append(isinstance(entry, slice))
        if isinstance(entry, slice):
            for bound in (entry.start, entry.stop, entry.step):
                add(bound)
        else:
            add(entry)
    return numbers


def encode_broadcast_axes(op: ops.Rebroadcast) -> list[int]:
    """Return the dimensions that a Rebroadcast requires to have length 1, after their number."""
    axes = [axis for axis, value in op.axis.items() if value]
    return [len(axes), *axes]


def encode_text(string: str) -> np.ndarray:
    """Encode a string as UTF-8 with a final zero byte, in an array of npy_intp."""
    encoded = string.encode("utf-8") + b"\0"
    return np.frombuffer(encoded + b"\0" * (-len(encoded) % np.intp().nbytes), "intp")


def encode_pooling(op: Any) -> list[int]:
    """Return the number of pooled dimensions, the mode, and whether the op ignores borders."""
    return [op.ndim, POOLING_MODES.index(op.mode), op.ignore_border]


def encode_correlation(op: BaseCorrMM) -> list[int]:
    """Return the direction and the number of groups, then the parameters by rows and by columns.

    The parameters are the stride, the dilation, and the padding before and after an image.
    """
    rows = [op.dH, op.dilH, op.padH_l, op.padH_r]
    columns = [op.dW, op.dilW, op.padW_l, op.padW_r]
    return [op.direction, op.num_groups, *rows, *columns]


# Maps a class of op to its parameters as integers, in the order in which thunks_ext.cpp reads them.
OP_DATA: dict[Any, Callable[[Any], Any]] = {
    basic.Alloc: lambda op: [],
    basic.AllocEmpty: lambda op: [],
    opt.Assert: lambda op: encode_text(op.msg),
    basic.Join: lambda op: [op.view],
    JoinAs: lambda op: [op.axis],
    basic.Reshape: lambda op: [op.ndim],
    basic.ScalarFromTensor: lambda op: [],
    basic.Split: lambda op: [],
    elemwise.DimShuffle: lambda op: [
        op.inplace,
        len(op.input_broadcastable),
        len(op._new_order),
        *op._new_order,
    ],
    blas_c.CGemv: lambda op: [op.inplace],
    blas_c.CGer: lambda op: [op.destructive],
    opt.MakeVector: lambda op: [],
    ops.DeepCopyOp: lambda op: [],
    ops.Rebroadcast: encode_broadcast_axes,
    ops.Shape_i: lambda op: [op.i],
    ops.SpecifyShape: lambda op: [],
    subtensor.AdvancedIncSubtensor1: lambda op: [op.inplace],
    subtensor.AdvancedSubtensor1: lambda op: [],
    subtensor.IncSubtensor: lambda op: [
        op.inplace,
        op.set_instead_of_inc,
        *encode_index(op.idx_list, 2),
    ],
    subtensor.Subtensor: lambda op: encode_index(op.idx_list, 1),
    **dict.fromkeys(CORRELATIONS, encode_correlation),
    **dict.fromkeys(POOLINGS, encode_pooling),
}
# The ops that can have scalars (theano.scalar) as inputs or outputs. Other ops have only arrays.
WITH_SCALARS = (basic.ScalarFromTensor, subtensor.IncSubtensor, subtensor.Subtensor)


def adds_floats(node: Apply) -> bool:
    """Return whether a node adds float32 to float32, or float64 to float64."""
    to, value, _ = node.inputs
    floats: bool = to.dtype == value.dtype in {"float32", "float64"}
    return floats and not node.op.set_instead_of_inc


def has_kernels(node: Apply) -> bool:
    """Return whether kernels compute a node's products: of float32 or float64, and with AVX2."""
    dtypes = {variable.dtype for variable in node.inputs}
    return HAS_KERNELS and dtypes in ({"float32"}, {"float64"})


def has_correlation_kernels(node: Apply) -> bool:
    """Return whether kernels compute a CorrMM or its gradient, and its output's shape is known."""
    op = node.op
    arrays = node.inputs[:2]
    needs_lengths = op.subsample != (1, 1) or op.border_mode == "half"
    return (
        HAS_KERNELS
        and len({variable.dtype for variable in arrays}) == 1
        and not op.unshared
        and (op._direction == "forward" or not needs_lengths or len(node.inputs) == 4)
    )


def has_signed_indices(node: Apply) -> bool:
    """Return whether all indices of a node, its last input, fit into npy_intp."""
    dtype: str = node.inputs[-1].dtype
    return dtype != "uint64"


def pools_floats(node: Apply) -> bool:
    """Return whether a node pools only float32 or only float64."""
    # The last three inputs are the lengths of windows, their distances and the padding.
    dtypes = {variable.dtype for variable in node.inputs[:-3] + node.outputs}
    return dtypes in ({"float32"}, {"float64"})


# Maps a class of op to conditions on a node. The precompiled thunk serves a node only if it meets
# all of them.
CONDITIONS: dict[Any, Sequence[Callable[[Apply], bool]]] = {
    blas_c.CGemv: (has_kernels,),
    blas_c.CGer: (has_kernels,),
    subtensor.AdvancedIncSubtensor1: (adds_floats, has_signed_indices),
    subtensor.AdvancedSubtensor1: (has_signed_indices,),
    **dict.fromkeys(CORRELATIONS, (has_correlation_kernels,)),
    **dict.fromkeys(POOLINGS, (pools_floats,)),
}


class PrecompiledLinker(CLinker):
    """Use the thunk of an op in thunks_ext.cpp instead of compiling a module."""

    @computed_once
    def is_precompiled(self) -> bool:
        """Return whether the precompiled thunk serves the node.

        It must support the types of the node's variables, and the node must meet CONDITIONS.
        """
        return (
            not self.no_recycling
            and all(
                type(variable.type) is TensorType
                or (type(variable.type) is Scalar and type(node.op) in WITH_SCALARS)
                for node in self.node_order
                for variable in node.inputs + node.outputs
            )
            and all(
                condition(node)
                for node in self.node_order
                for condition in CONDITIONS.get(type(node.op), ())
            )
        )

    def uses_params(self) -> bool:
        """Return False if the precompiled thunk serves the node: it reads OP_DATA instead."""
        return not self.is_precompiled()

    def add_missing(self, modules: dict[Any, Any]) -> None:
        """Add the node's module to `modules`, unless the precompiled thunk serves the node."""
        if not self.is_precompiled():
            super().add_missing(modules)

    def cthunk_factory(
        self,
        error_storage: list[Any],
        in_storage: Sequence[list[Any]],
        out_storage: Sequence[list[Any]],
        storage_map: Any = None,
        keep_lock: bool = False,
    ) -> tuple[object, Any]:
        """Return the thunk, a PyCapsule, and the module that contains it."""
        if not self.is_precompiled():
            thunk_and_module: tuple[object, Any] = super().cthunk_factory(
                error_storage, in_storage, out_storage, storage_map, keep_lock
            )
            return thunk_and_module
        (node,) = self.node_order
        # NumPy's type numbers; the bitwise complement marks a scalar.
        types = [
            np.dtype(variable.type.dtype).num
            if type(variable.type) is TensorType
            else ~np.dtype(variable.type.dtype).num
            for variable in node.inputs + node.outputs
        ]
        thunk = thunks_ext.make_thunk(
            type(node.op).__name__,
            np.array(OP_DATA[type(node.op)](node.op), "intp"),
            np.array(types, "intc"),
            self.get_init_tasks()[1][-1][2],
            error_storage,
            tuple(in_storage),
            tuple(out_storage),
        )
        return thunk, thunks_ext


linker_types.update((op, PrecompiledLinker) for op in OP_DATA)
