"""Optimizer that applies a function to the Scans of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from theano import gof
from theano.scan_module import scan_op

if TYPE_CHECKING:
    from theano.gof import Apply
    from theano.gof.fg import FunctionGraph


def is_scan(node: Apply) -> bool:
    """Return whether a node is a Scan."""
    return isinstance(node.op, scan_op.Scan)


class ScanRewriter(gof.Optimizer):
    """Apply a function to the Scans of a graph.

    Attributes:
        rewrite: the function. It gets the graph and a node, and can replace the node.
        applies_to: returns whether `rewrite` applies to a node.
    """

    def __init__(
        self,
        rewrite: Callable[[FunctionGraph, Apply], None],
        applies_to: Callable[[Apply], bool] = is_scan,
    ) -> None:
        self.rewrite = rewrite
        self.applies_to = applies_to

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach validation of replacements."""
        fgraph.attach_feature(gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Rewrite all Scans to which the function applies."""
        for node in fgraph.toposort():
            if self.applies_to(node):
                self.rewrite(fgraph, node)
