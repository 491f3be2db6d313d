"""Lookup of the local optimizers that may change a node, with the seconds of each optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theano.gof import Apply


def find_condition(lopt: Any) -> Callable[[Apply], bool]:
    """Return a function that is False only for nodes that a local optimizer leaves unchanged.

    If rewrite_conditions.py has no condition for the optimizer, the function always returns True.
    """
    from theano.tensor import rewrite_conditions  # noqa: PLC0415 - it imports theano.gof

    return rewrite_conditions.find_condition(lopt) or (lambda node: True)


class TimedOptimizers:
    """Records of the local optimizers of an EquilibriumOptimizer.

    A record is a list of four elements: the local optimizer, the seconds that it took, its
    condition on nodes, and its condition on ops. A condition may be None.

    Most tries of a local optimizer change nothing. Such a try takes no longer than a lookup in a
    dictionary. Therefore a record stores the seconds next to the optimizer, instead of in a
    dictionary. An optimizer is tried only on nodes that meet its conditions in
    theano/tensor/rewrite_conditions.py.

    Attributes:
        records: maps the id of a local optimizer to its record.
        all_types: the records of the optimizers that apply to all ops.
        by_type: maps a class of op to the records of the optimizers for this class.
        by_op: maps an op to the records of the optimizers for only this op.
        by_id: maps the id of an op to the op and the records for it. The reference to the op keeps
            the id valid.
    """

    def __init__(self, equilibrium: Any) -> None:
        """Make the records of an EquilibriumOptimizer's local optimizers."""
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
        # The keys are ops and classes of ops.
        lopts_by_key = equilibrium.local_optimizers_map.items()
        lopts_for_all = equilibrium.local_optimizers_all
        self.all_types = self._select(lopts_for_all)
        self.by_type = {
            key: self._select(lopts_for_all + lopts)
            for key, lopts in lopts_by_key
            if isinstance(key, type)
        }
        self.by_op = {
            key: self._select(lopts) for key, lopts in lopts_by_key if not isinstance(key, type)
        }
        self.by_id: dict[int, tuple[Any, list[list[Any]]]] = {}

    def _select(self, lopts: list[Any]) -> list[list[Any]]:
        return [self.records[id(lopt)] for lopt in lopts]

    def find(self, node: Apply) -> Iterator[list[Any]]:
        """Yield the records of the local optimizers that may change a node.

        A condition is evaluated just before its record is yielded, because the previous optimizer
        may have changed the node's inputs.
        """
        op = node.op
        if id(op) not in self.by_id:
            records = self.by_type.get(type(op), self.all_types) + self.by_op.get(op, [])
            self.by_id[id(op)] = (
                op,
                [record for record in records if record[3] is None or record[3](op)],
            )
        for record in self.by_id[id(op)][1]:
            condition = record[2]
            if condition is None or condition(node):
                yield record

    def add_times(self, seconds: MutableMapping[Any, float]) -> None:
        """Add the seconds of each local optimizer to its value in a mapping."""
        for lopt, lopt_seconds, *_ in self.records.values():
            seconds[lopt] += lopt_seconds
