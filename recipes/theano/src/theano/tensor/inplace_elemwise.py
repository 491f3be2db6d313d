"""Elemwise nodes are made to work in place, by what is known of which nodes wait for which.

To validate a graph takes as long as it is large. Here it is foreseen of each change whether the
graph is valid after it, and one validation, of all, is enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from theano import config, scalar
from theano.compile.function_module import Supervisor
from theano.gof.destroyhandler import DestroyHandler
from theano.gof.fg import InconsistencyError
from theano.gof.graph import Constant, io_toposort

if TYPE_CHECKING:
    from theano.gof import Apply, FunctionGraph, Variable

# Where a variable that is no view comes from: itself, if it is an input, or the numbers of its node
# and among its outputs, which stay when the node is replaced.
Root = Any

# Scalars are not computed in place in a graph of more nodes.
LARGE = 500


class Waiting:
    """Which nodes of a valid graph wait for which, and who overwrites what."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.handler = fgraph.destroy_handler
        nodes = fgraph.toposort()
        self.number: dict[Apply, int] = {node: i for i, node in enumerate(nodes)}
        # By a node's number: a bit for each number of those that run before it.
        self.before: list[int] = []
        orderings = self.handler.orderings(fgraph)
        for node in nodes:
            parents = {each.owner for each in node.inputs if each.owner is not None}
            self.before.append(self._up_to(parents.union(orderings.get(node, ()))))
        _, _, destroyers = self.handler.refresh_droot_impact()
        self.destroyers: dict[Root, int] = {
            self.root(variable): self.number[node] for variable, node in destroyers.items()
        }
        self.protected: set[Root] = set(map(self.root, fgraph.outputs))
        for feature in fgraph._features:
            if isinstance(feature, Supervisor):
                self.protected.update(map(self.root, feature.protected))

    def _viewed(self, variable: Variable) -> Variable:
        while variable in self.handler.view_i:
            variable = self.handler.view_i[variable]
        return variable

    def root(self, variable: Variable) -> Root:
        """Return where a variable, or what it is a view of, comes from."""
        variable = self._viewed(variable)
        return variable if variable.owner is None else (self.number[variable.owner], variable.index)

    def _up_to(self, nodes: Iterable[Apply]) -> int:
        """Return the bits of nodes and of those before them."""
        bits = 0
        for node in nodes:
            number = self.number[node]
            bits |= self.before[number] | 1 << number
        return bits

    def overwrite(self, node: Apply, i: int) -> bool:
        """Have a node overwrite an input, unless the graph would not be valid."""
        variable = self._viewed(node.inputs[i])
        root, number = self.root(variable), self.number[node]
        if (
            isinstance(variable, Constant)
            or getattr(variable.tag, "indestructible", False)
            or root in self.destroyers
        ):
            return False
        views, readers = [variable], set()
        for view in views:
            views.extend(self.handler.view_o.get(view, ()))
            for client, position in view.clients:
                if client is not node:
                    readers.add(client)
                elif position != i:
                    return False
        bits = self._up_to(readers - {"output"})
        if bits >> number & 1:
            return False
        self.destroyers[root] = number
        if bits & ~self.before[number]:
            self.before[number] |= bits
            own = 1 << number
            for other, before in enumerate(self.before):
                # A number has no more bits than the last node it is of.
                if before >= own and before & own:
                    self.before[other] |= bits
        return True

    def is_overwriting(self, node: Apply | None, inputs: Iterable[Variable]) -> bool:
        """Return whether a node overwrites one of a graph's inputs."""
        return node is not None and any(
            self.destroyers.get(self.root(each)) == self.number[node] for each in inputs
        )


def work_in_place(op_type: Any, fgraph: FunctionGraph) -> dict[str, Any]:
    """Have the nodes of a class of Elemwise overwrite inputs.

    Greedily: of each node, in topological order, each output takes the first input that it may.

    Returns:
        what InplaceElemwiseOptimizer prints of it.
    """
    start = fgraph.checkpoint()
    # What may object to a change that is valid for these.
    others = [
        feature
        for feature in fgraph._features
        if hasattr(feature, "validate") and type(feature) not in {DestroyHandler, Supervisor}
    ]
    try:
        changes = Changes(op_type, fgraph)
        changes.make(lambda: [feature.validate(fgraph) for feature in others])
        fgraph.validate()
    except InconsistencyError:
        # It was not foreseen.
        fgraph.revert(start)
        changes = Changes(op_type, fgraph)
        changes.make(fgraph.validate)
    return changes.profile


class Changes:
    """What is done to a graph."""

    def __init__(self, op_type: Any, fgraph: FunctionGraph) -> None:
        self.op_type, self.fgraph = op_type, fgraph
        self.waiting = Waiting(fgraph)
        self.profile: dict[str, Any] = {
            "node_before": len(fgraph.apply_nodes),
            "nb_call_replace": 0,
            "nb_call_validate": 0,
            "nb_inconsistent": 0,
            "ndim": defaultdict(int),
        }

    def make(self, validate: Callable[[], Any]) -> None:
        """Replace all nodes that may work in place.

        Args:
            validate: called after each change; if it raises InconsistencyError, that is undone.
        """
        limit = config.tensor.insert_inplace_optimizer_validate_nb
        large = self.profile["node_before"] > LARGE if limit == -1 else limit != 1
        for node in list(io_toposort(self.fgraph.inputs, self.fgraph.outputs)):
            if (
                type(node.op) is self.op_type
                # The C code of a Composite writes an output before it has read for the others.
                and (len(node.outputs) == 1 or type(node.op.scalar_op) is not scalar.Composite)
                and not (large and getattr(node.outputs[0].type, "ndim", -1) == 0)
            ):
                positions = [
                    i for i in range(len(node.outputs)) if i not in node.op.inplace_pattern
                ]
                self._replace(node, positions, validate)

    def _replace(
        self,
        node: Apply,
        positions: Iterable[int],
        validate: Callable[[], Any],
        refused: frozenset[tuple[int, int]] = frozenset(),
    ) -> Apply:
        """Replace a node by one of which outputs overwrite inputs, and return it.

        Args:
            positions: of the outputs.
            refused: outputs and inputs which that was tried of.
        """
        before, destroyers = self.waiting.before.copy(), self.waiting.destroyers.copy()
        chosen: dict[int, int] = {}
        for position in positions:
            for i in self._candidates(node, position, chosen):
                if (position, i) not in refused and self.waiting.overwrite(node, i):
                    chosen[position] = i
                    break
        if not chosen:
            return node
        try:
            new = self._overwriting(node, {**node.op.inplace_pattern, **chosen})
            self._substitute(node, new)
            try:
                self.profile["nb_call_validate"] += 1
                validate()
            except InconsistencyError:
                self._substitute(new, node)
                raise
        except (ValueError, InconsistencyError):
            self.profile["nb_inconsistent"] += 1
            self.waiting.before, self.waiting.destroyers = before, destroyers
            if len(chosen) == 1:
                return self._replace(node, positions, validate, refused.union(chosen.items()))
            for position in chosen:
                node = self._replace(node, [position], validate)
            return node
        self.profile["ndim"][new.outputs[0].ndim] += len(chosen)
        self.waiting.number[new] = self.waiting.number[node]
        return new

    def _candidates(self, node: Apply, position: int, chosen: Mapping[int, int]) -> list[int]:
        """Return which inputs an output can overwrite, the best first.

        An update that overwrites what it is one of, or what has overwritten that, is not copied.
        """
        output, update_mapping = node.outputs[position], self.fgraph.update_mapping or {}
        updated = [
            self.fgraph.inputs[update_mapping[i]]
            for client, i in output.clients
            if client == "output" and i in update_mapping
        ]

        def order(i: int) -> int:
            each = node.inputs[i]
            return 0 if each in updated else 2 - self.waiting.is_overwriting(each.owner, updated)

        return sorted(
            (
                i
                for i, each in enumerate(node.inputs)
                if each.type == output.type
                and i not in {**node.op.inplace_pattern, **chosen}.values()
                and self.waiting.root(each) not in self.waiting.protected
            ),
            key=order,
        )

    def _overwriting(self, node: Apply, pattern: Mapping[int, int]) -> Apply:
        """Return a node like one, of which outputs overwrite inputs."""
        scalar_op = node.op.scalar_op
        if hasattr(scalar_op, "make_new_inplace"):
            make, others = scalar_op.make_new_inplace, [each.dtype for each in node.outputs]
        else:
            make, others = type(scalar_op), [None] * len(node.outputs)
        preference = scalar.transfer_type(
            *(pattern.get(k, other) for k, other in enumerate(others))
        )
        new_outputs = self.op_type(make(preference), pattern)(*node.inputs, return_list=True)
        new: Apply = new_outputs[0].owner
        return new

    def _substitute(self, node: Apply, new: Apply) -> None:
        for old_output, new_output in zip(node.outputs, new.outputs, strict=True):
            self.profile["nb_call_replace"] += 1
            self.fgraph.replace(old_output, new_output, reason="inplace_elemwise_optimizer")
