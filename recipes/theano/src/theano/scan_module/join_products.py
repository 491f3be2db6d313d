"""Optimizer that joins matrix products inside of a Scan's steps.

Several gates or layers multiply one input by their weights, and its gradient is the sum of products
by these weights. If states are small, the overhead of a BLAS call exceeds its computation. Weights
are the same in all steps, so the optimizer joins them once, outside of the Scan. Then one product
replaces several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from theano import config, gof, tensor
from theano import scalar as scal
from theano.compile.ops import Shape_i
from theano.ifelse import IfElse
from theano.scan_module import scan_op
from theano.scan_module.graphs import copy_graph, copy_scan
from theano.scan_module.scan_utils import safe_new
from theano.tensor.elemwise import Elemwise
from theano.tensor.join_as import JoinAs

if TYPE_CHECKING:
    from theano.gof import Apply
    from theano.gof.fg import FunctionGraph


class JoinProducts(gof.Optimizer):
    """Join the products by several weight matrices in the steps of a Scan."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach validation of replacements."""
        fgraph.attach_feature(gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Join the products of all Scans of the graph."""
        for node in fgraph.toposort():
            if isinstance(node.op, scan_op.Scan):
                join_products(fgraph, node)


def register(db: Any) -> None:
    """Register the optimizer after the optimizers that push nodes out of Scans."""
    db.register("scanOp_join_products", JoinProducts(), 6, "fast_run", "more_mem", "scan")


class Product(NamedTuple):
    """A matrix product in the steps of a Scan.

    Attributes:
        value: the factor that changes from step to step, a vector or matrix.
        weights: the other factor, a matrix.
        first: whether the value is the first factor.
    """

    value: Any
    weights: Any
    first: bool


def product_of(node: Apply, weights: Any) -> Product | None:
    """Return the product of a value and one of the weights that a node computes, or None."""
    if not isinstance(node.op, tensor.Dot):
        return None
    lhs, rhs = node.inputs
    if lhs.dtype != rhs.dtype or (lhs in weights) == (rhs in weights):
        return None
    return Product(lhs, rhs, True) if rhs in weights else Product(rhs, lhs, False)


def multiply(value: Any, weights: Any, first: bool) -> Any:
    """Multiply a value by weights; `first` tells whether the value is the first factor."""
    return tensor.dot(value, weights) if first else tensor.dot(weights, value)


def is_sum(node: Any) -> bool:
    """Return whether a node is an addition; None is not."""
    return node is not None and isinstance(node.op, Elemwise) and node.op.scalar_op == scal.add


class Steps:
    """The inner graph of a Scan, and a copy of it with joined products.

    Attributes:
        copies: by inner variable: its copy or replacement.
        new_inputs: by additional inner input of the copy: its outer variable.
        weights: by inner matrix that is the same in all steps: its outer variable.
        order: the nodes in topological order.
        products: by output of a product: the product.
        clients: by variable: the nodes that read it, and None for each output of the steps.
    """

    def __init__(self, node: Apply) -> None:
        """Copy the inputs of the steps, and find the products."""
        scan = node.op
        inner, outer = scan.inner_non_seqs(scan.inputs), scan.outer_non_seqs(node.inputs)
        self.copies = {x: safe_new(x) for x in scan.inputs}
        self.new_inputs: dict[Any, Any] = {}
        self.weights = {
            x: outer_x
            for x, outer_x in zip(inner, outer, strict=True)
            if isinstance(x, tensor.TensorVariable)
            and x.broadcastable == (False, False)
            and x.dtype in {"float32", "float64"}
        }
        self.order = gof.graph.io_toposort(scan.inputs, scan.outputs)
        self.products = {
            inner_node.outputs[0]: product
            for inner_node in self.order
            if (product := product_of(inner_node, self.weights))
        }
        self.clients: dict[Any, list[Any]] = defaultdict(list)
        for inner_node in self.order:
            for x in inner_node.inputs:
                self.clients[x].append(inner_node)
        for x in scan.outputs:
            self.clients[x].append(None)

    def copy(self, variables: Iterable[Any]) -> list[Any]:
        """Return copies of variables, with the nodes that compute them."""
        variables = list(variables)
        copy_graph(variables, self.copies, strict=True, share_inputs=True)
        return [self.copies[x] for x in variables]

    def join_weights(self, products: Sequence[Product], axis: int) -> list[Any]:
        """Join the weights of products outside of the Scan.

        Returns:
            Two new inner inputs: the joined weights, and their lengths along the axis.
        """
        outers = [self.weights[product.weights] for product in products]
        lengths = tensor.stack([Shape_i(axis)(outer) for outer in outers])
        inputs = {safe_new(outer): outer for outer in (tensor.join(axis, *outers), lengths)}
        self.new_inputs.update(inputs)
        return list(inputs)

    def replace_products(self, outs: Sequence[Any]) -> None:
        """Replace several products of one value by the parts of one product."""
        of_weights = {self.products[out].weights: self.products[out] for out in outs}
        one = next(iter(of_weights.values()))
        weights, lengths = self.join_weights(list(of_weights.values()), int(one.first))
        (value,) = self.copy([one.value])
        product = multiply(value, weights, one.first)
        axis = product.ndim - 1 if one.first else 0
        parts = tensor.split(product, lengths, len(of_weights), axis)
        part_of = dict(zip(of_weights, parts, strict=True))
        self.copies.update((out, part_of[self.products[out].weights]) for out in outs)

    def replace_sum(self, total: Any, terms: Sequence[Any], outs: Sequence[Any]) -> None:
        """Replace products that are terms of a sum by one product of their joined values.

        Args:
            total: the sum.
            terms: all terms of the sum.
            outs: the terms that are products, with the value on the same side.
        """
        products = [self.products[out] for out in outs]
        one = products[0]
        weights, lengths = self.join_weights(products, 1 - one.first)
        values = self.copy(product.value for product in products)
        value = JoinAs(values[0].ndim - 1 if one.first else 0)(lengths, *values)
        others = self.copy(x for x in terms if x not in outs)
        self.copies[total] = tensor.add(multiply(value, weights, one.first), *others)

    def is_term(self, x: Any, total: Any) -> bool:
        """Return whether a term of a sum has the sum's type and no other reader."""
        return x.type == total.type and len(self.clients[x]) == 1

    def terms(self, total: Any) -> list[Any]:
        """Return the terms of a sum; a term that is a sum itself is replaced by its terms."""
        terms: list[Any] = []
        for x in total.owner.inputs:
            terms += self.terms(x) if is_sum(x.owner) and self.is_term(x, total) else [x]
        return terms

    def is_part_of_sum(self, total: Any) -> bool:
        """Return whether a sum is a term of another sum, which terms() would flatten."""
        client = self.clients[total][0]
        return is_sum(client) and self.is_term(total, client.outputs[0])


def join_products(fgraph: FunctionGraph, node: Apply) -> None:
    """Replace a Scan by a Scan with fewer products."""
    steps = Steps(node)
    # A lazy branch may never be computed; joining would compute its products always.
    if len(steps.products) < 2 or any(isinstance(x.op, IfElse) for x in steps.order):
        return
    outs_by_value: dict[Any, list[Any]] = defaultdict(list)
    for out, product in steps.products.items():
        outs_by_value[product.value, product.first].append(out)
    for inner_node in steps.order:
        out = inner_node.outputs[0]
        if out in steps.copies:
            continue
        if out in steps.products:
            product = steps.products[out]
            outs = outs_by_value[product.value, product.first]
            if len({steps.products[x].weights for x in outs}) > 1:
                steps.replace_products(outs)
        # JoinAs has no implementation on a GPU.
        elif is_sum(inner_node) and not steps.is_part_of_sum(out) and config.device == "cpu":
            terms = steps.terms(out)
            single = [
                x
                for x in terms
                if x in steps.products and x not in steps.copies and steps.is_term(x, out)
            ]
            for first in (True, False):
                outs = [x for x in single if steps.products[x].first == first]
                if len(outs) > 1:
                    steps.replace_sum(out, terms, outs)
                    break
    if steps.new_inputs:
        outputs = copy_scan(node, steps.copies, {}, steps.new_inputs)
        fgraph.replace_all_validate_remove(
            list(zip(node.outputs, outputs, strict=True)),
            remove=[node],
            reason="scanOp_join_products",
        )
