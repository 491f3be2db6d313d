"""Analysis of the memory that the nodes of a compiled function share, change and reuse."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable


class MemoryUse:
    """The memory that nodes use.

    Attributes:
        roots: maps an output of a node to its roots: the earliest variables whose memory it may
            share. An output that shares no memory with the node's inputs is its own root.
        users: maps a root to the nodes that use its memory.
        written: the roots whose memory nodes change in-place.
    """

    def __init__(self, nodes: Iterable[Apply]) -> None:
        """Analyze nodes in topological order."""
        self.roots: dict[Variable, set[Variable]] = {}
        self.users: dict[Variable, set[Apply]] = defaultdict(set)
        self.written: set[Variable] = set()
        for node in nodes:
            self._add(node)

    def find_roots(self, var: Variable) -> set[Variable]:
        """Return the roots of a variable. An input or constant is its own root."""
        return self.roots.get(var, {var})

    def find_written(self, node: Apply) -> set[Variable]:
        """Return the roots whose memory a node changes in-place."""
        positions = {i for inputs in getattr(node.op, "destroy_map", {}).values() for i in inputs}
        return set().union(*(self.find_roots(node.inputs[i]) for i in positions))

    def _add(self, node: Apply) -> None:
        """Record the memory of a node, after the nodes that compute its inputs."""
        views = getattr(node.op, "view_map", {})
        destroyed = getattr(node.op, "destroy_map", {})
        for i, output in enumerate(node.outputs):
            shared = [node.inputs[j] for j in views.get(i, []) + destroyed.get(i, [])]
            self.roots[output] = set().union(*map(self.find_roots, shared)) or {output}
        self.written |= self.find_written(node)
        for var in node.inputs + node.outputs:
            for root in self.find_roots(var):
                self.users[root].add(node)


class ScalarOutputs:
    """The scalars that nodes compute, in order, and that have no memory of earlier scalars yet."""

    def __init__(self, nodes: Iterable[Apply]) -> None:
        """Collect the scalars of nodes in topological order."""
        # Maps a type to its scalars and to the positions of the nodes that compute them.
        self._outputs: dict[Any, deque[tuple[int, Variable]]] = defaultdict(deque)
        for position, node in enumerate(nodes):
            for output in node.outputs:
                if getattr(output, "ndim", None) == 0:
                    self._outputs[output.type].append((position, output))

    def take(self, type: Any, position: int) -> Variable | None:
        """Remove and return the first scalar that a node after a position computes, or None.

        Args:
            type: the type of the scalar.
            position: the position of a node, not less than in earlier calls.
        """
        outputs = self._outputs[type]
        while outputs and outputs[0][0] <= position:
            outputs.popleft()
        return outputs.popleft()[1] if outputs else None
