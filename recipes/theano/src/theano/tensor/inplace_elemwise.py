"""Optimizer that makes Elemwise nodes work in-place, with one validation of the whole graph.

A validation takes time proportional to the size of the graph. Instead of validating the graph after
each change, the optimizer tracks the order in which nodes must run. Thus it can predict whether a
change keeps the graph valid.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from theano import config, scalar
from theano.compile.function_module import Supervisor
from theano.gof.destroyhandler import DestroyHandler
from theano.gof.fg import InconsistencyError
from theano.gof.graph import Constant, io_toposort
from theano.tensor.reused_ops import remember, reuse_ops

if TYPE_CHECKING:
    from theano.gof import Apply, FunctionGraph, Variable

# An identifier of a variable that is not a view. It stays valid if the node of the variable is
# replaced. For the output of a node, it is the pair of the node's number and the output's index. A
# variable without owner is its own identifier.
Root = Any

# In a graph with more nodes than this, scalars are not computed in-place.
LARGE = 500


class Waiting:
    """The order constraints between the nodes of a valid graph, and the overwritten variables.

    A node waits for all nodes that must run before it.

    Attributes:
        handler: the DestroyHandler of the graph.
        number: maps a node to its number. A new node gets the number of the node that it replaces.
        before: maps a node's number to a bit set of the numbers of all nodes that must run before
            the node.
        destroyers: maps a root to the number of the node that overwrites it.
        journal: functions that undo the changes since begin().
        protected: the roots that no node may overwrite.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.handler = fgraph.destroy_handler
        nodes = fgraph.toposort()
        self.number: dict[Apply, int] = {node: i for i, node in enumerate(nodes)}
        self.before: list[int] = []
        orderings = self.handler.orderings(fgraph)
        for node in nodes:
            parents = {x.owner for x in node.inputs if x.owner is not None}
            self.before.append(self._collect_before(parents.union(orderings.get(node, ()))))
        _, _, destroyers = self.handler.refresh_droot_impact()
        self.destroyers: dict[Root, int] = {
            self.find_root(variable): self.number[node] for variable, node in destroyers.items()
        }
        self.journal: list[Callable[[], Any]] = []
        self.protected: set[Root] = set(map(self.find_root, fgraph.outputs))
        for feature in fgraph._features:
            if isinstance(feature, Supervisor):
                self.protected.update(map(self.find_root, feature.protected))

    def _find_viewed(self, variable: Variable) -> Variable:
        """Return the variable whose memory a view shares; return other variables unchanged."""
        while variable in self.handler.view_i:
            variable = self.handler.view_i[variable]
        return variable

    def find_root(self, variable: Variable) -> Root:
        """Return the root of a variable; the root of a view is the root of the viewed variable."""
        variable = self._find_viewed(variable)
        return variable if variable.owner is None else (self.number[variable.owner], variable.index)

    def _collect_before(self, nodes: Iterable[Apply]) -> int:
        """Return the bit set of nodes and of all nodes that run before them."""
        bits = 0
        for node in nodes:
            number = self.number[node]
            bits |= self.before[number] | 1 << number
        return bits

    def begin(self) -> None:
        """Mark the current state as the state that undo() restores."""
        self.journal.clear()

    def undo(self) -> None:
        """Restore the state at the last begin()."""
        while self.journal:
            self.journal.pop()()

    def _set_before(self, number: int, bits: int) -> None:
        """Change an element of `before`, and record the change in the journal."""
        self.journal.append(functools.partial(self.before.__setitem__, number, self.before[number]))
        self.before[number] = bits

    def overwrite(self, node: Apply, i: int) -> bool:
        """Record that a node overwrites its input i, if the graph would stay valid.

        Returns:
            Whether the graph would stay valid. If not, nothing is recorded.
        """
        variable = self._find_viewed(node.inputs[i])
        root, number = self.find_root(variable), self.number[node]
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
        bits = self._collect_before(readers - {"output"})
        if bits >> number & 1:
            return False
        self.destroyers[root] = number
        self.journal.append(functools.partial(self.destroyers.pop, root))
        if bits & ~self.before[number]:
            self._set_before(number, self.before[number] | bits)
            bit = 1 << number
            for later, before in enumerate(self.before):
                # `before >= bit` is a fast test, which rejects most sets without the bit.
                if before >= bit and before & bit:
                    self._set_before(later, before | bits)
        return True

    def is_overwriting(self, node: Apply | None, inputs: Iterable[Variable]) -> bool:
        """Return whether a node overwrites one of the given inputs of the graph."""
        return node is not None and any(
            self.destroyers.get(self.find_root(x)) == self.number[node] for x in inputs
        )


@reuse_ops
def work_in_place(op_type: Any, fgraph: FunctionGraph) -> dict[str, Any]:
    """Make Elemwise nodes overwrite their inputs, by a greedy search.

    The nodes are changed in topological order. Each output of a node overwrites the first input for
    which the graph stays valid.

    Args:
        op_type: the class of Elemwise whose nodes are replaced.
        fgraph: the graph.

    Returns:
        The profile that InplaceElemwiseOptimizer prints.
    """
    start = fgraph.checkpoint()
    # The features whose validation Waiting cannot predict.
    unpredicted = [
        feature
        for feature in fgraph._features
        if hasattr(feature, "validate") and type(feature) not in {DestroyHandler, Supervisor}
    ]
    try:
        changes = Changes(op_type, fgraph)
        changes.replace_nodes(lambda: [feature.validate(fgraph) for feature in unpredicted])
        fgraph.validate()
    except InconsistencyError:
        # A prediction was wrong. Start again, and validate the graph after each change.
        fgraph.revert(start)
        changes = Changes(op_type, fgraph)
        changes.replace_nodes(fgraph.validate)
    return changes.profile


class Changes:
    """In-place replacements in a graph, and their profile."""

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

    def replace_nodes(self, validate: Callable[[], Any]) -> None:
        """Replace all nodes that may work in-place.

        Args:
            validate: called after each change. If it raises InconsistencyError, the change is
                undone.
        """
        limit = config.tensor.insert_inplace_optimizer_validate_nb
        large = self.profile["node_before"] > LARGE if limit == -1 else limit != 1
        for node in list(io_toposort(self.fgraph.inputs, self.fgraph.outputs)):
            if (
                type(node.op) is self.op_type
                # The C code of a Composite with several outputs may write an output before it reads
                # the inputs of another output. Subclasses, such as UpdatesComposite, first read all
                # inputs.
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
        """Replace a node by a node that works in-place.

        Args:
            node: the node.
            positions: the indices of the outputs that may overwrite inputs.
            validate: as for replace_nodes.
            refused: pairs of the indices of an output and an input that a validation rejected.

        Returns:
            The new node, or the old node if no output can overwrite an input.
        """
        self.waiting.begin()
        chosen: dict[int, int] = {}
        for position in positions:
            for i in self._list_candidates(node, position, chosen):
                if (position, i) not in refused and self.waiting.overwrite(node, i):
                    chosen[position] = i
                    break
        if not chosen:
            return node
        try:
            new = self._make_inplace(node, {**node.op.inplace_pattern, **chosen})
            self._substitute(node, new)
            try:
                self.profile["nb_call_validate"] += 1
                validate()
            except InconsistencyError:
                self._substitute(new, node)
                raise
        except (ValueError, InconsistencyError):
            self.profile["nb_inconsistent"] += 1
            self.waiting.undo()
            if len(chosen) == 1:
                return self._replace(node, positions, validate, refused.union(chosen.items()))
            for position in chosen:
                node = self._replace(node, [position], validate)
            return node
        self.profile["ndim"][new.outputs[0].ndim] += len(chosen)
        self.waiting.number[new] = self.waiting.number[node]
        return new

    def _list_candidates(self, node: Apply, position: int, chosen: Mapping[int, int]) -> list[int]:
        """Return the indices of the inputs that an output may overwrite, best first.

        The best input of an update is the variable that it updates: then the new value need not be
        copied. The second best input is the result of a node that overwrites this variable.
        """
        output, update_mapping = node.outputs[position], self.fgraph.update_mapping or {}
        updated = [
            self.fgraph.inputs[update_mapping[i]]
            for client, i in output.clients
            if client == "output" and i in update_mapping
        ]

        def rank(i: int) -> int:
            x = node.inputs[i]
            return 0 if x in updated else 2 - self.waiting.is_overwriting(x.owner, updated)

        return sorted(
            (
                i
                for i, x in enumerate(node.inputs)
                if x.type == output.type
                and i not in {**node.op.inplace_pattern, **chosen}.values()
                and self.waiting.find_root(x) not in self.waiting.protected
            ),
            key=rank,
        )

    def _make_inplace(self, node: Apply, pattern: Mapping[int, int]) -> Apply:
        """Return a copy of a node with another inplace_pattern."""
        key = (
            *("in-place", id(node.op), self.op_type, tuple(pattern.items())),
            *(output.dtype for output in node.outputs),
        )
        op = remember(key, [node.op], lambda: self._make_inplace_op(node, pattern))
        new: Apply = op(*node.inputs, return_list=True)[0].owner
        return new

    def _make_inplace_op(self, node: Apply, pattern: Mapping[int, int]) -> Any:
        """Return a copy of a node's op with another inplace_pattern."""
        scalar_op = node.op.scalar_op
        if hasattr(scalar_op, "make_new_inplace"):
            make, defaults = scalar_op.make_new_inplace, [out.dtype for out in node.outputs]
        else:
            make, defaults = type(scalar_op), [None] * len(node.outputs)
        preference = scalar.transfer_type(
            *(pattern.get(k, default) for k, default in enumerate(defaults))
        )
        return self.op_type(make(preference), pattern)

    def _substitute(self, node: Apply, new: Apply) -> None:
        """Replace the outputs of a node by the outputs of a new node."""
        for old_output, new_output in zip(node.outputs, new.outputs, strict=True):
            self.profile["nb_call_replace"] += 1
            self.fgraph.replace(old_output, new_output, reason="inplace_elemwise_optimizer")
