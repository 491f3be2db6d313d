"""Validation of graphs with in-place ops, by records that are updated with each change."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from theano.gof.fg import InconsistencyError
from theano.gof.graph import Constant
from theano.misc.ordered_set import OrderedSet

if TYPE_CHECKING:
    from theano.gof.destroyhandler import DestroyHandler
    from theano.gof.fg import FunctionGraph
    from theano.gof.graph import Apply, Variable

# A record of the destroyed variables: three dictionaries. The first maps a destroyed variable, and
# each view of it, to its root: the variable that owns the memory. The second maps a root to a
# dictionary, whose keys are the root and all its views. The third maps a root to the node that
# destroys it.
Roots = tuple[
    "dict[Variable, Variable]", "dict[Variable, dict[Variable, None]]", "dict[Variable, Apply]"
]


# The position of a new node, minus the largest position of the nodes that it waits for. STEP is a
# power of two. It is much larger than the rounding errors of positions, and much smaller than 1,
# the difference of successive positions after contains_cycle.
STEP = 2.0**-20


class DestroyTracker:
    """Track the variables that a graph's nodes destroy, and the order of computation.

    A node destroys a variable if it works in-place on the variable's memory. All other nodes that
    read the memory must run before this node. The record of destroyed variables is rebuilt only
    after their views change.

    Each node has a position, which must be larger than the positions of all nodes that it waits
    for. A validation checks only the nodes that changed since the last valid graph. If a node's
    position is too small, the validation searches the whole graph for a cycle.

    Attributes:
        roots: the record of destroyed variables, see Roots.
        new: the destroying nodes that must be added to `roots`.
        stale: whether `roots` must be rebuilt.
        parents: maps a node to the nodes that compute its inputs: a cache of _list_parents.
        waits: maps a destroying node to the nodes that must run before it destroys its inputs.
        unchecked: the destroying nodes whose entry in `waits` is missing or out of date.
        touched: the destroyed variables whose readers changed, so `waits` may be out of date.
        changed: the nodes whose position must be checked.
        position: maps a node to its position in the order of computation of the last valid graph.
            Nodes that do not wait for each other may have the same position.
    """

    def __init__(self, handler: DestroyHandler) -> None:
        self.handler = handler
        self.roots: Roots = {}, {}, {}
        self.new: dict[Apply, None] = {}
        self.stale = True
        self.parents: dict[Apply, list[Apply]] = {}
        self.waits: dict[Apply, set[Apply]] = {}
        self.unchecked: dict[Apply, None] = {}
        self.touched: set[Variable] = set()
        self.changed: dict[Apply, None] = {}
        self.position: dict[Apply, float] = {}

    def add_node(self, app: Apply) -> None:
        """Record that a node was added to the graph."""
        if _destroys(app):
            self.new[app] = None
        self.changed[app] = None
        self._note_readers(app.inputs)
        self._note_views(app, app.inputs)

    def remove_node(self, app: Apply) -> None:
        """Record that a node was removed from the graph."""
        self.parents.pop(app, None)
        self.waits.pop(app, None)
        self.unchecked.pop(app, None)
        self.changed.pop(app, None)
        self.position.pop(app, None)
        self._note_readers(app.inputs)
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
        """Record that an input of a node was replaced.

        Args:
            app: the node.
            variables: the old and the new input.
        """
        self.parents.pop(app, None)
        self.changed[app] = None
        self._note_readers(variables)
        self.stale |= _destroys(app)
        self._note_views(app, variables)

    def _note_readers(self, variables: Iterable[Variable]) -> None:
        """Record that the readers of variables changed, if the variables are destroyed."""
        self.touched.update(variable for variable in variables if variable in self.roots[0])

    def _note_views(self, app: Apply, variables: Iterable[Variable]) -> None:
        """Mark the record as stale if a node adds or removes a view of a destroyed variable."""
        if getattr(app.op, "view_map", None):
            self.stale |= any(variable in self.roots[0] for variable in variables)

    def refresh(self) -> Roots:
        """Update and return the record of destroyed variables.

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
            self.unchecked.update(self.new)
            for app in self.new:
                self._add(app)
            self.new = {}
        self.stale = False
        return self.roots

    def select_destroyed(self, variables: Iterable[Variable]) -> list[Variable]:
        """Return the variables that a node destroys directly or through a view."""
        root_of = self.refresh()[0]
        return [variable for variable in variables if variable in root_of]

    def _add(self, app: Apply) -> None:
        """Add the variables that one node destroys to the record."""
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
                direct_views = self.handler.view_o.get(todo.popleft(), ())
                views.extend(direct_views)
                todo.extend(direct_views)
            views_of[root] = dict.fromkeys((*views, root))
            root_of.update(dict.fromkeys(views_of[root], root))
            destroyer_of[root] = app

    def orderings(self, ordered: bool) -> dict[Apply, Any]:
        """Map each destroying node to the nodes that must run before it destroys its inputs.

        Args:
            ordered: if True, collect the nodes of the whole graph in new OrderedSets, whose order
                depends only on the graph. If False, update the sets in `waits`, and return them.

        Raises:
            InconsistencyError: a node destroys a constant or an indestructible variable; or a node
                destroys an input that shares memory with another input; or two nodes destroy the
                same variable.
        """
        root_of, views_of, destroyer_of = self.handler.refresh_droot_impact()
        if ordered:
            _check_destroyed(root_of)
            sets = {app: self._waits_for(app, OrderedSet) for app in self.handler.destroyers}
            return OrderedDict((app, nodes) for app, nodes in sets.items() if nodes)
        for root in {root_of[variable] for variable in self.touched if variable in root_of}:
            self.unchecked[destroyer_of[root]] = None
        self.touched.clear()
        for app in self.unchecked:
            for indices in app.op.destroy_map.values():
                _check_destroyed(views_of[root_of[app.inputs[indices[0]]]])
        for app in list(self.unchecked):
            self.waits[app] = self._waits_for(app, set)
            self.changed[app] = None
            del self.unchecked[app]
        return self.waits

    def _waits_for(self, app: Apply, make_set: Callable[[], Any]) -> Any:
        """Return the set of nodes that must run before a node destroys its inputs."""
        root_of, views_of, _ = self.roots
        readers = make_set()
        for indices in app.op.destroy_map.values():
            destroyed = app.inputs[indices[0]]
            views = views_of[root_of[destroyed]]
            # Two lists of pairs (d, i), where the op destroys input d. For a pair in `same`, inputs
            # d and i may be the same variable. For a pair in `aliased`, they may share memory.
            same = getattr(app.op, "destroyhandler_tolerate_same", [])
            aliased = getattr(app.op, "destroyhandler_tolerate_aliased", [])
            assert isinstance(same, list)
            assert isinstance(aliased, list)
            for i, variable in enumerate(app.inputs):
                if (
                    variable in views
                    and (indices[0], i) not in aliased
                    and not (variable is destroyed and (i == indices[0] or (indices[0], i) in same))
                ):
                    raise InconsistencyError(f"Input aliasing: {app} ({indices[0]}, {i})")
            for view in views:
                readers.update(list(self.handler.clients[view]))
        readers.remove(app)
        return readers

    def validate(self, fgraph: FunctionGraph) -> None:
        """Check that the graph can be computed.

        The time is proportional to the number of changes since the last valid graph, unless a
        changed node needs another position.

        Raises:
            InconsistencyError: the dependencies have a cycle, or `orderings` raised this error.
        """
        waits = self.orderings(ordered=False)
        if self._have_positions(waits):
            self.changed.clear()
            return
        position: dict[Apply, float] = {}
        if contains_cycle(fgraph, waits, self.parents, position):
            raise InconsistencyError("Dependency graph contains cycles")
        self.position = position
        self.changed.clear()

    def _have_positions(self, waits: Mapping[Apply, Collection[Apply]]) -> bool:
        """Set positions of new nodes; return whether each changed node comes after its parents."""
        position = self.position
        for app in self.changed:
            last_position = -1.0
            for parent in _list_parents(app, waits, self.parents):
                parent_position = position.get(parent)
                if parent_position is None:
                    return False
                last_position = max(last_position, parent_position)
            if position.setdefault(app, last_position + STEP) <= last_position:
                return False
        return True


def _destroys(app: Apply) -> bool:
    """Return whether a node works in-place on an input."""
    return bool(getattr(app.op, "destroy_map", None))


def _check_destroyed(variables: Iterable[Variable]) -> None:
    """Raise InconsistencyError if a variable must not be destroyed."""
    indestructible = [
        variable
        for variable in variables
        if getattr(variable.tag, "indestructible", False) or isinstance(variable, Constant)
    ]
    if indestructible:
        raise InconsistencyError(
            f"Attempting to destroy indestructible variables: {indestructible}"
        )


def _list_parents(
    node: Apply,
    orderings: Mapping[Apply, Collection[Apply]],
    parents_of: dict[Apply, list[Apply]],
) -> list[Apply]:
    """Return the nodes that must run before a node; see contains_cycle for the arguments."""
    parents = parents_of.get(node)
    if parents is None:
        parents = parents_of[node] = [i.owner for i in node.inputs if i.owner is not None]
    return [*parents, *orderings[node]] if node in orderings else parents


def contains_cycle(
    fgraph: FunctionGraph,
    orderings: Mapping[Apply, Collection[Apply]],
    parents_of: dict[Apply, list[Apply]],
    position: dict[Apply, float] | None = None,
) -> bool:
    """Return whether the dependencies of a graph's nodes have a cycle.

    A node waits for the nodes that compute its inputs and for the nodes in `orderings`.

    Args:
        fgraph: the graph.
        orderings: maps a node to the nodes that must run before it.
        parents_of: a cache that maps a node to the nodes that compute its inputs. Missing nodes are
            added.
        position: if not None, this dictionary is filled: it maps each node to its position in an
            order of computation. It is complete only if there is no cycle.
    """
    # Search depth-first, from each node to the nodes that it waits for. A node that is entered but
    # not done waits, directly or indirectly, for the entered nodes above it on the stack.
    entered, done = set[Any](), set[Any]()
    todo = list(fgraph.apply_nodes)
    while todo:
        node = todo[-1]
        if node in entered:
            done.add(todo.pop())
            if position is not None:
                position.setdefault(node, len(position))
            continue
        entered.add(node)
        for parent in _list_parents(node, orderings, parents_of):
            if parent not in done:
                if parent in entered:
                    return True
                todo.append(parent)
    return False
