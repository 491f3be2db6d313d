"""Optimizers that merge elementwise GPU nodes into GpuFusedLoops and let these work in-place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import theano
from theano import scalar
from theano.gof.graph import Apply, Constant
from theano.gof.utils import MethodNotDefined
from theano.gpuarray.basic_ops import GpuJoin
from theano.gpuarray.elemwise import GpuElemwise
from theano.gpuarray.fused_kernels import (
    Graph,
    KernelWriter,
    Literal,
    Program,
    Step,
    TooLarge,
    list_inplace,
    make_literal,
)
from theano.gpuarray.fused_loops import GpuFusedLoops
from theano.gpuarray.subtensor import GpuIncSubtensor
from theano.gpuarray.type import GpuArrayType
from theano.ifelse import IfElse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from theano.gof.graph import Variable

# CUDA limits the parameters of a kernel to 4096 bytes. This limit is lower, because
# count_parameter_bytes is an estimate.
MAX_PARAMETER_BYTES = 3200


class InplaceFusedLoops(theano.gof.Optimizer):
    """Let results of GpuFusedLoops overwrite inputs.

    The new value of a shared variable preferably overwrites the old value.
    """

    def add_requirements(self, fgraph: Any) -> None:
        """Attach the DestroyHandler, which validates in-place changes."""
        fgraph.attach_feature(theano.gof.destroyhandler.DestroyHandler())

    def apply(self, fgraph: Any) -> None:
        """Make each GpuFusedLoops of the graph work in-place if possible."""
        old_values = {
            fgraph.outputs[number]: fgraph.inputs[i]
            for number, i in (getattr(fgraph, "update_mapping", None) or {}).items()
        }
        for node in fgraph.toposort():
            if isinstance(node.op, GpuFusedLoops) and not node.op.inplace:
                self._change(fgraph, node, old_values)

    @staticmethod
    def _change(fgraph: Any, node: Apply, old_values: dict[Variable, Variable]) -> None:
        """Let each result of a node overwrite the first input for which the graph stays valid.

        Args:
            fgraph: the graph.
            node: the node of a GpuFusedLoops.
            old_values: maps the new value of a shared variable to the old value; try this input
                first.
        """
        pairs = sorted(
            list_inplace(Graph(node.op.program, node.inputs)),
            key=lambda pair: old_values.get(node.outputs[pair[0]]) is not node.inputs[pair[1]],
        )
        inplace: dict[int, int] = {}
        for position, i in pairs:
            if position in inplace or i in inplace.values():
                continue
            if isinstance(node.inputs[i], Constant):
                continue
            op = GpuFusedLoops(node.op.program, (*inplace.items(), (position, i)))
            new = op.make_node(*node.inputs)
            try:
                fgraph.replace_all_validate(
                    list(zip(node.outputs, new.outputs, strict=True)), reason="InplaceFusedLoops"
                )
            except (ValueError, theano.gof.InconsistencyError):
                continue
            copy_traces(node.outputs, new.outputs)
            inplace[position] = i
            node = new


class FuseLoops(theano.gof.Optimizer):
    """Merge elementwise nodes of the same level into one node.

    A node has level n + 1 if it depends on a node of level n through a node that a kernel cannot
    contain, such as a matrix product. Otherwise it has level 0. Between two nodes of the same level
    there is no such path, so one kernel can compute both.
    """

    def add_requirements(self, fgraph: Any) -> None:
        """Attach validation of replacements."""
        fgraph.attach_feature(theano.gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: Any) -> None:
        """Replace groups of nodes whose separate kernels would need more than one launch."""
        nodes = fgraph.toposort()
        # Change no graph with a lazy op. The op may not need all inputs of a group, but the group's
        # kernel would wait for them.
        if any(isinstance(node.op, IfElse) for node in nodes):
            return
        for group in list(iterate_groups(nodes)):
            replace_group(fgraph, group)


def copy_traces(old: Sequence[Variable], new: Sequence[Variable]) -> None:
    """Copy the stack trace of each variable to the variable that replaces it."""
    for old_variable, new_variable in zip(old, new, strict=True):
        theano.gof.opt.copy_stack_trace(old_variable, new_variable)


def is_elemwise(node: Apply) -> bool:
    """Return whether a node is a GpuElemwise that a kernel can contain: it is not in-place."""
    return type(node.op) is GpuElemwise and not node.op.inplace_pattern


def is_supported(node: Apply) -> bool:
    """Return whether all arrays of a node have types that kernels can compute with."""
    arrays = [v.type for v in (*node.inputs, *node.outputs) if isinstance(v.type, GpuArrayType)]
    return all(np.dtype(t.dtype).kind in "biuf" and t.dtype != "float16" for t in arrays)


def is_join(node: Apply) -> bool:
    """Return whether a node is a GpuJoin along a constant axis, without the option `view`."""
    return type(node.op) is GpuJoin and node.op.view == -1 and isinstance(node.inputs[0], Constant)


def is_increment(node: Apply) -> bool:
    """Return whether a node is a GpuIncSubtensor that a kernel can contain.

    The op must not be in-place. Its slices must have no step, and its indices must be inputs. The
    increment must have the same number of dimensions as the subtensor.
    """
    if type(node.op) is not GpuIncSubtensor or node.op.inplace:
        return False
    x, y = node.inputs[:2]
    entries = node.op.idx_list
    indices = [entry for entry in entries if not isinstance(entry, slice)]
    return (
        all(not isinstance(entry, slice) or entry.step is None for entry in entries)
        and not any(isinstance(entry, (int, np.integer)) for entry in indices)
        and y.ndim == x.ndim - len(indices)
        and all(isinstance(v.type, scalar.Scalar) for v in node.inputs[2:])
    )


def count_launches(node: Apply, joined: Sequence[Apply]) -> int:
    """Return the number of launches that a node needs without fusion.

    Return 0 if no kernel can compute the node together with other nodes.

    Args:
        node: any node.
        joined: the nodes that compute inputs of this node and that the same kernel can compute.
    """
    if not is_supported(node):
        return 0
    if is_elemwise(node):
        return 1
    if is_join(node):
        return len(node.inputs) - 1
    # Without fusion, one launch copies the array of the increment, and one adds to the copy. If the
    # same kernel does not compute the array, fusion would not avoid the copy.
    return 2 if is_increment(node) and node.inputs[0].owner in joined else 0


def iterate_groups(nodes: Sequence[Apply]) -> Iterator[list[Apply]]:
    """Yield groups of nodes that one kernel can compute; each is in topological order.

    Args:
        nodes: the nodes of a graph in topological order.
    """
    # Maps a node to its level (see FuseLoops), or to -1 if no kernel precedes the node.
    levels: dict[Apply, int] = {}
    # Maps a node that a kernel can contain to the number of its launches without fusion.
    fusable: dict[Apply, int] = {}
    # A union-find structure: connected nodes of a level form a component.
    parents: dict[Apply, Apply] = {}

    def find_root(node: Apply) -> Apply:
        while node in parents:
            node = parents[node]
        return node

    for node in nodes:
        owners = [v.owner for v in node.inputs if v.owner is not None]
        inside = max((levels[owner] for owner in owners if owner in fusable), default=0)
        outside = max(
            (levels[owner] + 1 for owner in owners if owner not in fusable and levels[owner] >= 0),
            default=0,
        )
        level = max(inside, outside)
        joined = [owner for owner in owners if owner in fusable and levels[owner] == level]
        if launches := count_launches(node, joined):
            levels[node] = level
            fusable[node] = launches
            for owner in joined:
                if find_root(owner) is not find_root(node):
                    parents[find_root(owner)] = find_root(node)
        else:
            levels[node] = max((levels[owner] for owner in owners), default=-1)
    components: dict[Apply, list[Apply]] = {}
    for node in nodes:
        if node in fusable:
            components.setdefault(find_root(node), []).append(node)
    by_level: dict[tuple[int, Any], list[list[Apply]]] = {}
    for component in components.values():
        key = levels[component[0]], component[0].outputs[0].type.context_name
        by_level.setdefault(key, []).append(component)
    for level_components in by_level.values():
        yield from pack_components(level_components, fusable)


def pack_components(
    components: Sequence[list[Apply]], launches: dict[Apply, int]
) -> Iterator[list[Apply]]:
    """Join components into groups whose parameters fit in a kernel; yield each group's nodes.

    Groups that need only one launch without fusion are omitted.

    Args:
        components: the components of one level and one device.
        launches: maps a node to the number of its launches without fusion.
    """
    groups: list[list[Apply]] = [[]]
    for component in components:
        if count_parameter_bytes(groups[-1] + component) > MAX_PARAMETER_BYTES:
            groups.append([])
        if count_parameter_bytes(component) <= MAX_PARAMETER_BYTES:
            groups[-1] += component
    yield from (group for group in groups if sum(launches[node] for node in group) > 1)


def count_parameter_bytes(group: Sequence[Apply]) -> int:
    """Estimate the size of a kernel's parameters in bytes: 8 for each parameter."""
    inputs, outputs = find_borders(group)
    arrays = [v for v in (*inputs, *outputs) if isinstance(v.type, GpuArrayType)]
    n_parameters = sum(2 + v.type.ndim for v in (*arrays, *outputs))
    n_parameters += sum(3 * len(node.inputs) for node in group if not is_elemwise(node))
    return 8 * int(n_parameters)


def find_borders(group: Sequence[Apply]) -> tuple[list[Variable], list[Variable]]:
    """Return the variables that a group of nodes reads, and its results that other nodes read."""
    inside = set(group)
    inputs: dict[Variable, None] = {}
    outputs = []
    for node in group:
        for variable in node.inputs:
            if variable.owner not in inside:
                inputs[variable] = None
        (output,) = node.outputs
        if any(client == "output" or client not in inside for client, _ in output.clients):
            outputs.append(output)
    return list(inputs), outputs


def make_program(
    group: Sequence[Apply], inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[Program, list[Variable]]:
    """Return the program of a group of nodes, and the inputs that are not literals.

    Args:
        group: the nodes, in topological order.
        inputs: the variables that the group reads, see find_borders.
        outputs: the results that other nodes read.
    """
    literals: dict[Literal, int] = {}
    references: dict[Variable, int] = {}
    kernel_inputs: list[Variable] = []
    for variable in inputs:
        literal = make_literal(variable) if isinstance(variable, Constant) else None
        if literal is None:
            references[variable] = len(kernel_inputs)
            kernel_inputs.append(variable)
        else:
            references[variable] = -1 - literals.setdefault(literal, len(literals))
    steps: list[Step] = []
    for node in group:
        references[node.outputs[0]] = len(kernel_inputs) + len(steps)
        steps.append(Step(node.op, tuple(references[v] for v in node.inputs)))
    results = tuple(references[v] for v in outputs)
    program = Program(len(kernel_inputs), tuple(literals), tuple(steps), results)
    return program, kernel_inputs


def replace_group(fgraph: Any, group: Sequence[Apply]) -> None:
    """Replace a group of nodes by a GpuFusedLoops if its kernel can be written."""
    inputs, outputs = find_borders(group)
    program, kernel_inputs = make_program(group, inputs, outputs)
    if not any(isinstance(v.type, GpuArrayType) for v in kernel_inputs):
        return
    # The axis of a join must be a literal.
    if any(isinstance(step.op, GpuJoin) and step.arguments[0] >= 0 for step in program.steps):
        return
    op = GpuFusedLoops(program)
    node = op.make_node(*kernel_inputs)
    if [v.type for v in node.outputs] != [v.type for v in outputs]:
        return
    try:
        KernelWriter(Graph(program, kernel_inputs))
    except (TooLarge, MethodNotDefined):
        return
    fgraph.replace_all_validate(list(zip(outputs, node.outputs, strict=True)), reason="FuseLoops")
    copy_traces(outputs, node.outputs)


theano.compile.optdb.register(
    # Run it after Theano's own fusion, at position 49, and before the in-place optimizers.
    "gpua_fused_loops",
    FuseLoops(),
    49.1,
    "fast_run",
    "fusion",
    "gpuarray",
)
theano.compile.optdb.register(
    "gpua_inplace_fused_loops", InplaceFusedLoops(), 75, "fast_run", "inplace", "gpuarray"
)
