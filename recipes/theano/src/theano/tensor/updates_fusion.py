"""Fusion of the elementwise nodes of updates into one Elemwise with several outputs.

Theano's own fusion makes Composites with one output, and does not fuse a node that several nodes
read. In an optimizer such as Adam, the new moments of a gradient and the new value of the parameter
read the same arrays, and intermediate results of each other. One fused loop reads and writes each
array once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theano import config, scalar
from theano.gof import toolbox
from theano.gof.opt import Optimizer, copy_stack_trace
from theano.scalar.composites import apply_inner_ops
from theano.tensor.elemwise import Elemwise
from theano.tensor.elemwise_fusion import MAX_COMPOSITE_DEPTH, can_generate
from theano.tensor.reused_ops import remember, reuse_ops

if TYPE_CHECKING:
    from theano.gof import Apply, FunctionGraph, Variable

# The largest number of operations of a Composite. An operation counts once per reader, because
# printing and the Python implementation repeat it for each reader. RMSProp with momentum has 42.
MAX_OPERATIONS = 500


class UpdatesComposite(scalar.Composite):
    """Composite that reads all inputs before it writes an output, so that it can work in-place."""

    def c_code(
        self,
        node: Apply,
        nodename: str,
        inames: Sequence[str],
        onames: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        """Return C code that computes the elements of all outputs, then writes them."""
        names = [f"{nodename}_new{i}" for i in range(len(onames))]
        types = [output.type.dtype_specs()[1] for output in node.outputs]
        declared = "".join(f"{t} {name};\n" for t, name in zip(types, names, strict=True))
        computed = super().c_code(node, nodename, inames, names, sub)
        written = "".join(f"{o} = {name};\n" for o, name in zip(onames, names, strict=True))
        return f"{{\n{declared}{computed}{written}}}\n"

    def c_code_cache_version(self) -> tuple[Any, ...]:
        """Return the version of the C code, or () if an inner op has none."""
        version = super().c_code_cache_version()
        return (1, version) if version else ()


class UpdatesFusion(Optimizer):
    """Fuse Elemwise nodes that compute arrays of one shape and that only updates read."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach validation of replacements."""
        fgraph.attach_feature(toolbox.ReplaceValidate())

    @reuse_ops
    def apply(self, fgraph: FunctionGraph) -> None:
        """Fuse the updates of a graph."""
        # In Python, one Elemwise with several outputs is slower than several Elemwise nodes.
        if not (config.cxx and fgraph.update_mapping):
            return
        for nodes in find_groups(fgraph):
            fused = fuse_group(nodes)
            if fused:
                fgraph.replace_all_validate(fused, reason=type(self).__name__)


def find_groups(fgraph: FunctionGraph) -> list[list[Apply]]:
    """Return groups of nodes to fuse, each in topological order.

    No input of a group depends on an output of the same group or of another group.
    """
    order = fgraph.toposort()
    update_nodes = {fgraph.outputs[i].owner for i in fgraph.update_mapping}
    chosen = {node for node in order if node in update_nodes and is_fusible(node)}
    for node in reversed(order):
        readers = {client for out in node.outputs for client, _ in out.clients} - {"output"}
        if readers and readers <= chosen and is_fusible(node):
            (output,) = node.outputs
            if all(reader.outputs[0].broadcastable == output.broadcastable for reader in readers):
                chosen.add(node)
    shapes = Shapes()
    groups = defaultdict(list)
    for node in order:
        if node in chosen:
            shapes.join(node)
    for node in order:
        if node in chosen:
            groups[shapes.find_representative(node.outputs[0])].append(node)
    # The nodes that are not chosen and depend on a chosen node.
    dependent: set[Apply] = set()
    # The shapes of the groups that read a dependent node or a node of another group. Fusing such a
    # group could make a cycle.
    excluded = set()
    for node in order:
        for variable in node.inputs:
            owner = variable.owner
            if node not in chosen:
                if owner in dependent or owner in chosen:
                    dependent.add(node)
            elif owner in dependent or (
                owner in chosen
                and shapes.find_representative(variable)
                is not shapes.find_representative(node.outputs[0])
            ):
                excluded.add(shapes.find_representative(node.outputs[0]))
    return [nodes for shape, nodes in groups.items() if len(nodes) > 1 and shape not in excluded]


class Shapes:
    """Sets of variables that have the same shape, as a union-find structure.

    The output of an Elemwise has the shape of each input with the same broadcastable pattern.
    """

    def __init__(self) -> None:
        """Start with each variable in a separate set."""
        self.parent: dict[Variable, Variable] = {}

    def find_representative(self, variable: Variable) -> Variable:
        """Return the representative of a variable's set, which identifies the shape."""
        root = variable
        while root in self.parent:
            root = self.parent[root]
        if root is not variable:
            self.parent[variable] = root
        return root

    def join(self, node: Apply) -> None:
        """Join the sets of an Elemwise's output and of the inputs that have its shape."""
        output = node.outputs[0]
        for variable in node.inputs:
            if variable.broadcastable == output.broadcastable:
                input_root = self.find_representative(variable)
                output_root = self.find_representative(output)
                if input_root is not output_root:
                    self.parent[input_root] = output_root


def is_fusible(node: Apply) -> bool:
    """Return whether a node is an Elemwise with C code and one output that is not a scalar."""
    op = node.op
    if (
        type(op) is not Elemwise
        or op.inplace_pattern
        or len(node.outputs) > 1
        or all(node.outputs[0].broadcastable)
        or any(variable.dtype == "float16" for variable in node.inputs + node.outputs)
    ):
        return False
    dtypes = tuple(variable.dtype for variable in node.inputs)
    dtype = remember(
        ("dtype", id(op.scalar_op), dtypes),
        [op.scalar_op],
        lambda: find_dtype(op.scalar_op, dtypes),
    )
    return bool(dtype == node.outputs[0].dtype)


def find_dtype(scalar_op: Any, dtypes: Sequence[str]) -> str | None:
    """Return the dtype of a scalar op's output for inputs of given dtypes; None without C code."""
    inner = scalar_op.make_node(*(scalar.get_scalar_type(dtype)() for dtype in dtypes))
    return inner.outputs[0].dtype if can_generate(scalar_op, inner.outputs) else None


def fuse_group(nodes: Sequence[Apply]) -> list[tuple[Variable, Variable]]:
    """Fuse nodes into one Elemwise.

    Args:
        nodes: the nodes of a group, in topological order.

    Returns:
        Pairs of an output of the nodes and its replacement, or an empty list if the Composite would
        be too large.
    """
    # Number the variables in the order in which the nodes read them.
    numbers: dict[Variable, int] = {}
    for node in nodes:
        for variable in [*node.inputs, node.outputs[0]]:
            numbers.setdefault(variable, len(numbers))
    group = set(nodes)
    outputs = [
        node.outputs[0]
        for node in nodes
        if any(client not in group for client, _ in node.outputs[0].clients)
    ]
    computed = {node.outputs[0] for node in nodes}
    inputs = [variable for variable in numbers if variable not in computed]
    scalar_ops = [node.op.scalar_op for node in nodes]
    key = (
        "updates",
        tuple(
            (
                id(node.op.scalar_op),
                numbers[node.outputs[0]],
                *map(numbers.__getitem__, node.inputs),
            )
            for node in nodes
        ),
        tuple(numbers[output] for output in outputs),
        tuple(variable.dtype for variable in inputs),
    )
    op = remember(key, scalar_ops, lambda: make_op(nodes, inputs, outputs))
    if op is None:
        return []
    fused = op(*inputs, return_list=True)
    copy_stack_trace(outputs, fused)
    return list(zip(outputs, fused, strict=True))


def make_op(
    nodes: Sequence[Apply], inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> Elemwise | None:
    """Make the Elemwise that computes outputs of nodes; return None if it is too large.

    Args:
        nodes: the nodes, in topological order.
        inputs: the variables that the nodes read, without the outputs of the nodes.
        outputs: the outputs of the Elemwise.
    """
    inner: dict[Variable, Any] = {x: scalar.get_scalar_type(x.dtype)() for x in inputs}
    for node in nodes:
        scalar_inputs = [inner[variable] for variable in node.inputs]
        inner[node.outputs[0]] = apply_inline(node.op.scalar_op, scalar_inputs)
    op = UpdatesComposite([inner[x] for x in inputs], [inner[x] for x in outputs])
    if op.depth > MAX_COMPOSITE_DEPTH or count_tree_operations(op) > MAX_OPERATIONS:
        return None
    return Elemwise(op)


def count_tree_operations(op: scalar.Composite) -> int:
    """Count the operations of a Composite; an operation counts once per reader."""
    counts: dict[Variable, int] = {}
    for node in op.fgraph.toposort():
        count = 1 + sum(counts.get(variable, 0) for variable in node.inputs)
        counts.update(dict.fromkeys(node.outputs, count))
    return sum(counts[output] for output in op.fgraph.outputs)


def apply_inline(op: Any, inputs: Sequence[Any]) -> Any:
    """Apply a scalar op, or the inner ops of a Composite, to inputs; return the first output."""
    return apply_inner_ops(op, inputs)[0] if isinstance(op, scalar.Composite) else op(*inputs)
