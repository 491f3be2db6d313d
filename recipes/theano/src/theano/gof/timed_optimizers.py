"""Local optimizers by class of op, with the seconds that each optimizer takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theano.gof import Apply


def find_condition(lopt: Any) -> Callable[[Apply], bool]:
    """Return a function that returns False for nodes that a local optimizer leaves unchanged."""
    from theano.tensor import rewrite_conditions  # noqa: PLC0415 - it imports theano.gof

    return rewrite_conditions.find_condition(lopt) or (lambda node: True)


class TimedOptimizers:
    """The local optimizers of an EquilibriumOptimizer, in lists.

    A list contains the optimizer, its seconds, and its conditions on nodes and on ops, or None.

    Most tries of a local optimizer change nothing, and take no longer than looking up an optimizer
    in a dictionary. Therefore the list stores an optimizer's seconds next to the optimizer. An
    optimizer is tried only on nodes that meet its conditions in
    theano/tensor/rewrite_conditions.py.
    """

    def __init__(self, equilibrium: Any) -> None:
        """Make the lists for the local optimizers of an EquilibriumOptimizer."""
        from theano.tensor import rewrite_conditions  # noqa: PLC0415 - it imports theano.gof

        self.records = {
            id(lopt): [
                lopt,
                0.0,
                rewrite_conditions.find_condition(lopt),
                rewrite_conditions.find_op_condition(lopt),
            ]
            for lopt in equilibrium.get_local_optimizers()
        }
        tracked = equilibrium.local_optimizers_map.items()
        for_all = equilibrium.local_optimizers_all
        self.all_types = self._select(for_all)
        self.by_type = {
            key: self._select(for_all + lopts) for key, lopts in tracked if isinstance(key, type)
        }
        self.by_op = {
            key: self._select(lopts) for key, lopts in tracked if not isinstance(key, type)
        }

        # Maps the id of an op to the op, which keeps the id valid, and its lists.
        self.by_id: dict[int, tuple[Any, list[list[Any]]]] = {}

    def _select(self, lopts: list[Any]) -> list[list[Any]]:
        return [self.records[id(lopt)] for lopt in lopts]

    def find(self, node: Apply) -> Iterator[list[Any]]:
        """Yield the lists of the local optimizers that may change a node.

        The conditions are evaluated one by one, because an optimizer may change the node's inputs.
        """
        op = node.op
        if id(op) not in self.by_id:
            records = self.by_type.get(type(op), self.all_types) + self.by_op.get(op, [])
            self.by_id[id(op)] = op, [r for r in records if r[3] is None or r[3](op)]
        for record in self.by_id[id(op)][1]:
            condition = record[2]
            if condition is None or condition(node):
                yield record

    def add_times(self, seconds: MutableMapping[Any, float]) -> None:
        """Add the seconds of each local optimizer to a mapping."""
        for lopt, spent, *_ in self.records.values():
            seconds[lopt] += spent
