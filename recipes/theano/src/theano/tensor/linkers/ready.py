"""Ops whose thunks are in thunks_ext.cpp, whatever their arrays are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from theano.compile import ops
from theano.gof.cc import CLinker, linker_types
from theano.gof.graph import Apply
from theano.gof.type import Type
from theano.scalar import Scalar
from theano.tensor import basic, elemwise, opt, subtensor, thunks_ext
from theano.tensor.join_as import JoinAs
from theano.tensor.type import TensorType

# The kinds of numbers in an index.
NONE, LITERAL, INPUT = range(3)


def index(entries: Sequence[Any], first_input: int) -> list[int]:
    """Return what make_view of thunks_ext.cpp reads of a Subtensor's idx_list.

    Args:
        entries: the idx_list: slices and integers, with a Type for each input.
        first_input: the number of the input that the first Type stands for.
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
            for each in (entry.start, entry.stop, entry.step):
                add(each)
        else:
            add(entry)
    return numbers


def ones(op: ops.Rebroadcast) -> list[int]:
    """Return how many, and which dimensions a Rebroadcast wants to be 1."""
    axes = [axis for axis, value in op.axis.items() if value]
    return [len(axes), *axes]


def text(string: str) -> np.ndarray:
    """Return a text, of which C knows the end, as integers of type npy_intp."""
    encoded = string.encode("utf-8") + b"\0"
    return np.frombuffer(encoded + b"\0" * (-len(encoded) % np.intp().nbytes), "intp")


# What each ready op of thunks_ext.cpp reads of its op.
READY: dict[Any, Callable[[Any], Any]] = {
    basic.Alloc: lambda op: [],
    basic.AllocEmpty: lambda op: [],
    opt.Assert: lambda op: text(op.msg),
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
    opt.MakeVector: lambda op: [],
    ops.DeepCopyOp: lambda op: [],
    ops.Rebroadcast: ones,
    ops.Shape_i: lambda op: [op.i],
    ops.SpecifyShape: lambda op: [],
    subtensor.AdvancedIncSubtensor1: lambda op: [op.inplace],
    subtensor.AdvancedSubtensor1: lambda op: [],
    subtensor.IncSubtensor: lambda op: [
        op.inplace,
        op.set_instead_of_inc,
        *index(op.idx_list, 2),
    ],
    subtensor.Subtensor: lambda op: index(op.idx_list, 1),
}
# Of these, inputs or outputs are numbers; those of others are arrays.
WITH_SCALARS = (basic.ScalarFromTensor, subtensor.IncSubtensor, subtensor.Subtensor)


def adds_floats(node: Apply) -> bool:
    """Return whether a node adds what its array has: floats, not of 16 bits."""
    to, value, _ = node.inputs
    floats: bool = to.dtype == value.dtype in {"float32", "float64"}
    return floats and not node.op.set_instead_of_inc


def has_index_of_rows(node: Apply) -> bool:
    """Return whether a node's indices, the last input, are numbers as npy_intp has them."""
    dtype: str = node.inputs[-1].dtype
    return dtype != "uint64"


# What nodes of an op must be.
CONDITIONS: dict[Any, Sequence[Callable[[Apply], bool]]] = {
    subtensor.AdvancedIncSubtensor1: (adds_floats, has_index_of_rows),
    subtensor.AdvancedSubtensor1: (has_index_of_rows,),
}


class ReadyLinker(CLinker):
    """Compile nothing: the C code of the op's thunk is in the package."""

    def is_ready(self) -> bool:
        """Return whether that code knows the types of the node's variables."""
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

    def add_missing(self, modules: dict[Any, Any]) -> None:
        """Add a module to the missing ones if that code is not enough."""
        if not self.is_ready():
            super().add_missing(modules)

    def cthunk_factory(
        self,
        error_storage: list[Any],
        in_storage: Sequence[list[Any]],
        out_storage: Sequence[list[Any]],
        storage_map: Any = None,
        keep_lock: bool = False,
    ) -> tuple[object, Any]:
        """Return the thunk, a capsule, and the module that it is from."""
        if not self.is_ready():
            made: tuple[object, Any] = super().cthunk_factory(
                error_storage, in_storage, out_storage, storage_map, keep_lock
            )
            return made
        (node,) = self.node_order
        types = [
            np.dtype(variable.type.dtype).num
            if type(variable.type) is TensorType
            else ~np.dtype(variable.type.dtype).num
            for variable in node.inputs + node.outputs
        ]
        thunk = thunks_ext.make_thunk(
            type(node.op).__name__,
            np.array(READY[type(node.op)](node.op), "intp"),
            np.array(types, "intc"),
            self.get_init_tasks()[1][-1][2],
            error_storage,
            tuple(in_storage),
            tuple(out_storage),
        )
        return thunk, thunks_ext


linker_types.update((op, ReadyLinker) for op in READY)
