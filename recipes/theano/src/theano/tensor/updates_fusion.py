"""The elementwise part of an optimizer's updates, fused: each array is read and written once.

Theano's own fusion makes a Composite of one output, of operations that nothing else reads. What
computes new moments of a gradient and the parameter's new value reads the same arrays, and each
other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theano import config, scalar
from theano.gof import toolbox
from theano.gof.opt import Optimizer, copy_stack_trace
from theano.gof.utils import MethodNotDefined
from theano.scalar.composites import applied
from theano.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from theano.gof import Apply, FunctionGraph, Variable

# A Composite is printed, and computed in Python, as if nothing in it was read twice: of so many
# operations at most. RMSProp with momentum has 42.
LARGEST = 500


class UpdatesComposite(scalar.Composite):
    """A Composite that has read all inputs when it writes an output, so that it may overwrite them.

    As in any other, g++ may round a product and a sum once.
    """

    def c_code(
        self,
        node: Apply,
        nodename: str,
        inames: Sequence[str],
        onames: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        """Return C code that computes elements, then writes them."""
        names = [f"{nodename}_new{i}" for i in range(len(onames))]
        types = [output.type.dtype_specs()[1] for output in node.outputs]
        declared = "".join(f"{t} {name};\n" for t, name in zip(types, names, strict=True))
        computed = super().c_code(node, nodename, inames, names, sub)
        written = "".join(f"{o} = {name};\n" for o, name in zip(onames, names, strict=True))
        return f"{{\n{declared}{computed}{written}}}\n"

    def c_code_cache_version(self) -> tuple[Any, ...]:
        """Return the version of the C code, () if it has none."""
        version = super().c_code_cache_version()
        return (1, version) if version else ()


class UpdatesFusion(Optimizer):
    """Make one Elemwise of those that only updates read, where they compute arrays of one shape."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Let nodes be replaced."""
        fgraph.attach_feature(toolbox.ReplaceValidate())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Fuse what can be."""
        # In Python an Elemwise of several outputs is slower than several.
        if not (config.cxx and fgraph.update_mapping):
            return
        for nodes in groups(fgraph):
            fused = fuse(nodes)
            if fused:
                fgraph.replace_all_validate(fused, reason=type(self).__name__)


def groups(fgraph: FunctionGraph) -> list[list[Apply]]:
    """The nodes that can be one, each in topological order.

    None of what they read is computed of what they compute, nor of what others of these do.
    """
    order = fgraph.toposort()
    updated = {fgraph.outputs[i].owner for i in fgraph.update_mapping}
    chosen = {node for node in order if node in updated and is_fusible(node)}
    for node in reversed(order):
        readers = {client for each in node.outputs for client, _ in each.clients} - {"output"}
        if readers and readers <= chosen and is_fusible(node):
            (output,) = node.outputs
            if all(each.outputs[0].broadcastable == output.broadcastable for each in readers):
                chosen.add(node)
    shapes = Shapes()
    found = defaultdict(list)
    for node in order:
        if node in chosen:
            shapes.join(node)
    for node in order:
        if node in chosen:
            found[shapes.of(node.outputs[0])].append(node)
    after: set[Apply] = set()
    apart = set()
    for node in order:
        for each in node.inputs:
            if node not in chosen:
                if each.owner in after or each.owner in chosen:
                    after.add(node)
            elif each.owner in after or (
                each.owner in chosen and shapes.of(each) is not shapes.of(node.outputs[0])
            ):
                apart.add(shapes.of(node.outputs[0]))
    return [nodes for shape, nodes in found.items() if len(nodes) > 1 and shape not in apart]


class Shapes:
    """Which variables have the same shape, since an Elemwise reads or computes them together."""

    def __init__(self) -> None:
        """Nothing is known."""
        self.same: dict[Variable, Variable] = {}

    def of(self, variable: Variable) -> Variable:
        """The one variable that stands for all of its shape."""
        found = variable
        while found in self.same:
            found = self.same[found]
        if found is not variable:
            self.same[variable] = found
        return found

    def join(self, node: Apply) -> None:
        """Note an Elemwise: what is broadcast along no more than its output has that shape."""
        output = node.outputs[0]
        for each in node.inputs:
            if each.broadcastable == output.broadcastable:
                one, other = self.of(each), self.of(output)
                if one is not other:
                    self.same[one] = other


def is_fusible(node: Apply) -> bool:
    """Whether a node is an Elemwise of one output, an array, that a Composite can have in it."""
    op = node.op
    if (
        type(op) is not Elemwise
        or op.inplace_pattern
        or len(node.outputs) > 1
        or all(node.outputs[0].broadcastable)
        or any(each.dtype == "float16" for each in node.inputs + node.outputs)
    ):
        return False
    inner = op.scalar_op.make_node(*(scalar.get_scalar_type(each.dtype)() for each in node.inputs))
    try:
        op.scalar_op.c_code(inner, "node", ["x"] * len(inner.inputs), ["z"], {"fail": "%(fail)s"})
    except (MethodNotDefined, NotImplementedError):
        return False
    return bool(inner.outputs[0].dtype == node.outputs[0].dtype)


def fuse(nodes: Sequence[Apply]) -> list[tuple[Variable, Variable]]:
    """Make an Elemwise that computes what nodes do; pairs of variables to replace, and by what."""
    from theano.tensor.opt import MAX_COMPOSITE_DEPTH  # noqa: PLC0415 (it imports this module)

    inner: dict[Variable, Any] = {}
    inputs = []
    for node in nodes:
        for each in node.inputs:
            if each not in inner:
                inputs.append(each)
                inner[each] = scalar.get_scalar_type(each.dtype)()
        read = [inner[each] for each in node.inputs]
        inner[node.outputs[0]] = inlined(node.op.scalar_op, read)
    together = set(nodes)
    outputs = [
        node.outputs[0]
        for node in nodes
        if any(client not in together for client, _ in node.outputs[0].clients)
    ]
    op = UpdatesComposite([inner[each] for each in inputs], [inner[each] for each in outputs])
    if op.depth > MAX_COMPOSITE_DEPTH or written_out(op) > LARGEST:
        return []
    fused = Elemwise(op)(*inputs, return_list=True)
    copy_stack_trace(outputs, fused)
    return list(zip(outputs, fused, strict=True))


def written_out(op: scalar.Composite) -> int:
    """How many operations the outputs are of, each counted wherever it is read."""
    counts: dict[Variable, int] = {}
    for node in op.fgraph.toposort():
        count = 1 + sum(counts.get(each, 0) for each in node.inputs)
        counts.update(dict.fromkeys(node.outputs, count))
    return sum(counts[output] for output in op.fgraph.outputs)


def inlined(op: Any, inputs: Sequence[Any]) -> Any:
    """Apply an op of scalars, of a Composite each of those in it; the result."""
    return applied(op, inputs)[0] if isinstance(op, scalar.Composite) else op(*inputs)
