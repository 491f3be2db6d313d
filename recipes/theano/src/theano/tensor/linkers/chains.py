"""Chains: shipped loops of scalar ops that compute an Elemwise until its own loops are compiled.

A chain computes a block of elements by the loops of one scalar op after another. The results have
the same bits as the results of the compiled loops, because both round after each scalar op
(-ffp-contract=off) and call the same functions.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import scalar
from theano.gof import utils
from theano.tensor import elemwise, thunks_ext
from theano.tensor.linkers import shipped_loops
from theano.tensor.linkers.op_descriptions import Struct
from theano.tensor.type import TensorType

if TYPE_CHECKING:
    from theano.gof import Apply
    from theano.gof.graph import Variable
    from theano.tensor.linkers.loops import LoopsLinker

# The ops whose C code converts its operands to their common type (c_operands.py).
ARITHMETIC = (
    *(scalar.Add, scalar.Mul, scalar.Sub, scalar.TrueDiv),
    *(scalar.Maximum, scalar.Minimum, scalar.Clip),
)
COMPARISONS = (scalar.LT, scalar.GT, scalar.LE, scalar.GE, scalar.EQ, scalar.NEQ)
# The ops with any number of operands, and the instances that chains apply to two operands. An
# instance in a graph may take the dtype of its result from the operand at a certain position.
NARY = {scalar.Add: scalar.add, scalar.Mul: scalar.mul}
# The ops that convert a number to a dtype.
CONVERSIONS = {
    dtype: getattr(scalar, f"convert_to_{dtype}")
    for dtype in ("int16", "int32", "int64", "float32", "float64")
}


class Unavailable(Exception):
    """Raised if no chain can compute an op."""


class ChainedOp(ctypes.Structure):
    """The C struct chained_op of thunks/chain.h."""

    _fields_ = (("op", Struct), ("code", ctypes.c_void_p))


# The structs and codes to which thunks point. They live as long as the process.
live_chains: list[tuple[ChainedOp, Struct, np.ndarray]] = []


@functools.cache
def find_loops(op: Any, dtypes: tuple[str, ...], flags: tuple[str, ...]) -> tuple[int, str]:
    """Find the shipped loops of a scalar op for contiguous vectors.

    Args:
        op: the scalar op.
        dtypes: the dtype of each operand.
        flags: g++'s current flags. Loops compiled with other flags are not found.

    Returns:
        The address of the loops, and the dtype of the output.

    Raises:
        Unavailable: the loops are not shipped.
    """
    vectors = [TensorType(dtype, (False,))() for dtype in dtypes]
    node = elemwise.Elemwise(op).make_node(*vectors)
    name = shipped_loops.find_name(node.op.c_linker(node, []))
    if not name:
        raise Unavailable
    return shipped_loops.find_function(f"loops{name}"), node.outputs[0].dtype


class Chain:
    """The steps that compute an Elemwise. A value is an array or a temporary array.

    Attributes:
        flags: g++'s flags.
        dtypes: the dtype of each value.
        steps: for each step, the address of its loops, and the numbers of its operands and of its
            output.
    """

    def __init__(self, flags: tuple[str, ...], dtypes: Sequence[str]) -> None:
        """Make a chain without steps, for arrays with these dtypes."""
        self.flags = flags
        self.dtypes = list(dtypes)
        self.steps: list[tuple[int, list[int]]] = []

    def apply(self, op: Any, operands: Sequence[int]) -> int:
        """Add a step that computes a scalar op; return the number of its output, a new value."""
        dtypes = tuple(self.dtypes[operand] for operand in operands)
        address, dtype = find_loops(op, dtypes, self.flags)
        self.dtypes.append(dtype)
        output = len(self.dtypes) - 1
        self.steps.append((address, [*operands, output]))
        return output

    def convert(self, operands: Sequence[int], dtype: str) -> list[int]:
        """Add steps that convert operands to a dtype; return the numbers of the results."""
        return [
            operand if self.dtypes[operand] == dtype else self.apply(CONVERSIONS[dtype], [operand])
            for operand in operands
        ]

    def compute(self, node: Apply, operands: Sequence[int]) -> int:
        """Add the steps that compute a scalar node; return the number of its output.

        Raises:
            Unavailable: no shipped loops compute the node.
        """
        op, (output,) = node.op, node.outputs
        operands = list(operands)
        if isinstance(op, ARITHMETIC):
            operands = self.convert_to_common(operands, output.dtype)
        elif isinstance(op, COMPARISONS):
            operands = self.convert_to_common(operands)
        elif isinstance(op, scalar.Switch):
            operands[1:] = self.convert_to_common(operands[1:], output.dtype)
        # C computes a sum of several operands from left to right.
        while type(op) in NARY and len(operands) > 2:
            operands = [self.apply(NARY[type(op)], operands[:2]), *operands[2:]]
        result = self.apply(NARY.get(type(op), op), operands)
        if self.dtypes[result] != output.dtype:
            raise Unavailable
        return result

    def convert_to_common(self, operands: Sequence[int], dtype: str | None = None) -> list[int]:
        """Convert operands to their common dtype, as c_operands.convert_to_type does.

        Args:
            operands: the numbers of the operands.
            dtype: the required common dtype, or None for any dtype.

        Raises:
            Unavailable: the operands have no common dtype, or their common dtype is not `dtype`.
        """
        dtypes = {self.dtypes[operand] for operand in operands}
        if len(dtypes) == 1:
            return list(operands)
        common = scalar.upcast(*dtypes)
        # C compares integers without a common integer type as long doubles.
        only_integers = not any(name.startswith("float") for name in dtypes)
        if (
            common != (dtype or common)
            or common not in CONVERSIONS
            or (only_integers and common.startswith("float"))
        ):
            raise Unavailable
        return self.convert(operands, common)


def encode_chain(chain: Chain, n_arrays: int, outputs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Encode a chain as the integers that struct chained_op of thunks/chain.h describes.

    Args:
        chain: the chain.
        n_arrays: the number of its values that are arrays.
        outputs: pairs of the number of an array and of the value to write to it.
    """
    steps, copies = chain.steps, outputs
    # The last step writes a single output directly to its array. With several outputs, a direct
    # write could overwrite an array that later steps read, so copies follow the last step.
    ((array, value), *others) = outputs
    if not others and steps[-1][1][-1] == value:
        address, (*operands, _) = steps[-1]
        steps, copies = [*steps[:-1], (address, [*operands, array])], []
    last_uses = {value: i for i, (_, values) in enumerate(steps) for value in values}
    last_uses.update((value, len(steps)) for _, value in copies)
    # A value reuses the temporary array of a dead value with the same dtype.
    numbers = {i: i for i in range(n_arrays)}
    free: dict[str, list[int]] = {}
    dtypes = chain.dtypes[:n_arrays]
    code = []
    for i, (address, values) in enumerate(steps):
        output = values[-1]
        if output not in numbers:
            unused = free.get(chain.dtypes[output])
            numbers[output] = unused.pop() if unused else len(dtypes)
            if numbers[output] == len(dtypes):
                dtypes.append(chain.dtypes[output])
        code += [address, len(values), *(numbers[value] for value in values)]
        for value in {*values}:
            if value >= n_arrays and last_uses[value] == i:
                free.setdefault(chain.dtypes[value], []).append(numbers[value])
    item_sizes = [np.dtype(dtype).itemsize for dtype in dtypes]
    pairs = [number for array, value in copies for number in (array, numbers[value])]
    return np.array(
        [
            n_arrays,
            len(dtypes) - n_arrays,
            *item_sizes,
            len(steps),
            *code,
            len(copies),
            *pairs,
        ],
        "intp",
    )


def make_code(node: Apply, overwritten: Sequence[int], flags: tuple[str, ...]) -> np.ndarray:
    """Return the encoded chain that computes an Elemwise.

    Args:
        node: the node of the Elemwise.
        overwritten: for each output, the number of the input that it overwrites, or -1.
        flags: g++'s flags.

    Raises:
        Unavailable: the loops of a scalar op are not shipped, or the scalar op contains a constant.
    """
    op = node.op.scalar_op
    if isinstance(op, scalar.Composite):
        scalar_inputs, scalar_outputs = op.fgraph.inputs, op.fgraph.outputs
        scalar_nodes = op.fgraph.toposort()
    else:
        scalar_inputs = [scalar.get_scalar_type(array.dtype)() for array in node.inputs]
        scalar_nodes = [op.make_node(*scalar_inputs)]
        scalar_outputs = scalar_nodes[0].outputs
    inputs = utils.uniq(node.inputs)
    allocated = [output for output, i in zip(node.outputs, overwritten, strict=True) if i < 0]
    arrays = [*inputs, *allocated]
    chain = Chain(flags, [array.dtype for array in arrays])
    values: dict[Variable, int] = {
        variable: inputs.index(array)
        for variable, array in zip(scalar_inputs, node.inputs, strict=True)
    }
    for scalar_node in scalar_nodes:
        if any(operand not in values for operand in scalar_node.inputs):
            raise Unavailable
        operands = [values[operand] for operand in scalar_node.inputs]
        values[scalar_node.outputs[0]] = chain.compute(scalar_node, operands)
    outputs = []
    for output, i, variable in zip(node.outputs, overwritten, scalar_outputs, strict=True):
        if variable in scalar_inputs:
            raise Unavailable
        outputs.append((arrays.index(output) if i < 0 else i, values[variable]))
    return encode_chain(chain, len(arrays), outputs)


def make_module(linker: LoopsLinker) -> tuple[ModuleType, int] | None:
    """Make a module that computes the node of a linker by a chain.

    Returns:
        The module, and the address of its struct chained_op; None if no chain computes the node.
    """
    (node,) = linker.node_order
    loops, flags = linker.make_loops(), tuple(linker.list_flags())
    if (
        not isinstance(node.op, elemwise.Elemwise)
        or not shipped_loops.load_library()
        or not loops
        # A Composite with a function that g++ cannot vectorize calls other functions than the
        # shipped loops do (loops_cgen.choose_functions).
        or "libm_" in loops.description.loops
        # With amdlibm, a SIMD function and the scalar function for the remaining elements may round
        # differently.
        or any("AMDLIBM" in flag for flag in flags)
        # The loops of an op that can fail are called with any strides.
        or (node.outputs[0].ndim and not loops.description.assumes_contiguous)
    ):
        return None
    try:
        code = make_code(node, loops.description.overwritten, flags)
    except (Unavailable, NotImplementedError, utils.MethodNotDefined):
        return None
    op = loops.description.make_struct(lambda function: 0)
    chained = ChainedOp(op, code.ctypes.data)
    live_chains.append((chained, op, code))
    address = ctypes.addressof(chained)
    return thunks_ext.module_of("chain", address), address
