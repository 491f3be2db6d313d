"""What nodes destroy that work in place, kept while a graph changes, and the order it imposes."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from theano.gof.fg import InconsistencyError

if TYPE_CHECKING:
    from theano.gof.destroyhandler import DestroyHandler
    from theano.gof.fg import FunctionGraph
    from theano.gof.graph import Apply, Variable

# By destroyed variable, and by view of it: the variable that is no view. By that one: itself and
# its views, and the node that destroys it.
Roots = tuple[
    "dict[Variable, Variable]", "dict[Variable, dict[Variable, None]]", "dict[Variable, Apply]"
]


class Destroyed:
    """What the nodes of a graph destroy, found anew only where views of it change."""

    def __init__(self, handler: DestroyHandler) -> None:
        self.handler = handler
        self.roots: Roots = {}, {}, {}
        # Nodes that destroy and are not in roots yet.
        self.new: dict[Apply, None] = {}
        self.stale = True
        # By node: those that compute its inputs, where contains_cycle has looked.
        self.parents: dict[Apply, list[Apply]] = {}

    def imported(self, app: Apply) -> None:
        """Tell of a node that came."""
        if _destroys(app):
            self.new[app] = None
        self._views_change(app, app.inputs)

    def pruned(self, app: Apply) -> None:
        """Tell of a node that went."""
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
        self._views_change(app, app.inputs)

    def changed(self, app: Apply, *variables: Variable) -> None:
        """Tell of a node that has another input: the old and the new one."""
        self.parents.pop(app, None)
        self.stale |= _destroys(app)
        self._views_change(app, variables)

    def _views_change(self, app: Apply, variables: Iterable[Variable]) -> None:
        if getattr(app.op, "view_map", None):
            self.stale |= any(variable in self.roots[0] for variable in variables)

    def refresh(self) -> Roots:
        """Return what all nodes destroy.

        Raises:
            InconsistencyError: two destroy the same.
            NotImplementedError: an output destroys several inputs.
        """
        if self.stale:
            self.roots = {}, {}, {}
            self.new = dict.fromkeys(self.handler.destroyers)
        if self.new:
            # Until all are in.
            self.stale = True
            for app in self.new:
                self._add(app)
            self.new = {}
        self.stale = False
        return self.roots

    def _add(self, app: Apply) -> None:
        """Add what one node destroys."""
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
    """Return whether a node waits for itself: it does for its inputs' and those ordered before.

    Args:
        parents_of: the nodes that compute a node's inputs, where they are known; others are added.
    """
    # Depth first, from each node to those that it waits for. A node which is entered and not done
    # yet waits for all that come after it on the stack.
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
