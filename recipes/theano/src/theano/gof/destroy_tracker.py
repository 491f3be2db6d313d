"""Incremental record of the variables that in-place nodes destroy, and a search for cycles."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from theano.gof.fg import InconsistencyError

if TYPE_CHECKING:
    from theano.gof.destroyhandler import DestroyHandler
    from theano.gof.fg import FunctionGraph
    from theano.gof.graph import Apply, Variable

# Three dictionaries. By destroyed variable or view of one: its root, the variable that owns the
# memory. By root: the root with all its views, as the keys of a dictionary. By root: the node that
# destroys it.
Roots = tuple[
    "dict[Variable, Variable]", "dict[Variable, dict[Variable, None]]", "dict[Variable, Apply]"
]


class DestroyTracker:
    """Track the variables that a graph's nodes destroy; search again only after their views change.

    Attributes:
        roots: the record, see Roots.
        new: the destroying nodes that `roots` does not contain yet.
        stale: whether `roots` must be rebuilt.
        parents: by node: the nodes that compute its inputs, filled by contains_cycle.
    """

    def __init__(self, handler: DestroyHandler) -> None:
        self.handler = handler
        self.roots: Roots = {}, {}, {}
        self.new: dict[Apply, None] = {}
        self.stale = True
        self.parents: dict[Apply, list[Apply]] = {}

    def add_node(self, app: Apply) -> None:
        """Record that a node was added to the graph."""
        if _destroys(app):
            self.new[app] = None
        self._note_views(app, app.inputs)

    def remove_node(self, app: Apply) -> None:
        """Record that a node was removed from the graph."""
        self.parents.pop(app, None)
        if app in self.new:
            del self.new[app]
        elif _destroys(app):
            root_of, views_of, destroyer_of = self.roots
            for root in [root_of.get(variable) for variable in app.inputs]:
                if destroyer_of.get(root) is app:
                    del destroyer_of[root]
                    for view in views_of.pop(root):
                        del root_of[view]
        self._note_views(app, app.inputs)

    def change_input(self, app: Apply, *variables: Variable) -> None:
        """Record that an input of a node was replaced: the old and the new variable."""
        self.parents.pop(app, None)
        self.stale |= _destroys(app)
        self._note_views(app, variables)

    def _note_views(self, app: Apply, variables: Iterable[Variable]) -> None:
        """Mark the record as stale if a node adds or removes a view of a destroyed variable."""
        if getattr(app.op, "view_map", None):
            self.stale |= any(variable in self.roots[0] for variable in variables)

    def refresh(self) -> Roots:
        """Return the up-to-date record for all nodes.

        Raises:
            InconsistencyError: two nodes destroy the same variable.
            NotImplementedError: one output destroys several inputs.
        """
        if self.stale:
            self.roots = {}, {}, {}
            self.new = dict.fromkeys(self.handler.destroyers)
        if self.new:
            # An exception in the loop leaves the record incomplete.
            self.stale = True
            for app in self.new:
                self._add(app)
            self.new = {}
        self.stale = False
        return self.roots

    def _add(self, app: Apply) -> None:
        """Add the variables that one node destroys."""
        root_of, views_of, destroyer_of = self.roots
        for indices in app.op.destroy_map.values():
            if len(indices) != 1:
                raise NotImplementedError
            root = app.inputs[indices[0]]
            while root in self.handler.view_i:
                root = self.handler.view_i[root]
            if root in root_of:
                raise InconsistencyError(f"Multiple destroyers of {root}")
            views, todo = list[Any](), deque([root])
            while todo:
                more = self.handler.view_o.get(todo.popleft(), ())
                views.extend(more)
                todo.extend(more)
            views_of[root] = dict.fromkeys((*views, root))
            root_of.update(dict.fromkeys(views_of[root], root))
            destroyer_of[root] = app


def _destroys(app: Apply) -> bool:
    return bool(getattr(app.op, "destroy_map", None))


def contains_cycle(
    fgraph: FunctionGraph,
    orderings: Mapping[Apply, Collection[Apply]],
    parents_of: dict[Apply, list[Apply]],
) -> bool:
    """Return whether the order of computation has a cycle.

    A node waits for the nodes that compute its inputs and for the nodes in its orderings.

    Args:
        fgraph: the graph.
        orderings: by node: the nodes that must run before it.
        parents_of: a cache: by node, the nodes that compute its inputs. Missing nodes are added.
    """
    # Depth first, from each node to the nodes that it waits for. A node that is entered but not
    # done waits, directly or not, for all nodes above it on the stack.
    entered, done = set[Any](), set[Any]()
    todo = list(fgraph.apply_nodes)
    while todo:
        node = todo[-1]
        if node in entered:
            done.add(todo.pop())
            continue
        entered.add(node)
        parents = parents_of.get(node)
        if parents is None:
            parents = parents_of[node] = [i.owner for i in node.inputs if i.owner is not None]
        if node in orderings:
            parents = [*parents, *orderings[node]]
        for parent in parents:
            if parent not in done:
                if parent in entered:
                    return True
                todo.append(parent)
    return False
