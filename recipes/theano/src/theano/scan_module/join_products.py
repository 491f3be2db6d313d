"""Optimizer that joins matrix products inside of a Scan's steps.

Several gates or layers multiply the same input by their weights. The gradient of the input is the
sum of products by these weights. If states are small, the overhead of a BLAS call takes longer than
its computation. Weights are the same in all steps, so the optimizer joins them once, outside of the
Scan. Then one product per step replaces several products.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from theano import config, gof, tensor
from theano import scalar as scal
from theano.compile.ops import Shape_i
from theano.ifelse import IfElse
from theano.scan_module.graphs import copy_graph, copy_scan
from theano.scan_module.scan_rewriter import ScanRewriter
from theano.scan_module.scan_utils import safe_new
from theano.tensor.elemwise import Elemwise
from theano.tensor.join_as import JoinAs

if TYPE_CHECKING:
    from theano.gof import Apply
    from theano.gof.fg import FunctionGraph


def register(db: Any) -> None:
    """Register the optimizer after the optimizers that push nodes out of Scans."""
    optimizer = ScanRewriter(join_products)
    db.register("scanOp_join_products", optimizer, 6, "fast_run", "more_mem", "scan")


class Product(NamedTuple):
    """A matrix product in the steps of a Scan.

    Attributes:
        value: the factor that changes from step to step, a vector or matrix.
        weights: the factor that is the same in all steps, a matrix.
        first: whether the value is the first factor.
    """

    value: Any
    weights: Any
    first: bool


def find_product(node: Apply, weights: Any) -> Product | None:
    """Return the Product of a node, or None if not exactly one factor is a weight."""
    if not isinstance(node.op, tensor.Dot):
        return None
    lhs, rhs = node.inputs
    if lhs.dtype != rhs.dtype or (lhs in weights) == (rhs in weights):
        return None
    return Product(lhs, rhs, True) if rhs in weights else Product(rhs, lhs, False)


def multiply(value: Any, weights: Any, first: bool) -> Any:
    """Multiply a value by weights; if `first` is true, the value is the first factor."""
    return tensor.dot(value, weights) if first else tensor.dot(weights, value)


def is_sum(node: Any) -> bool:
    """Return whether a node is an elementwise addition; return False for None."""
    return node is not None and isinstance(node.op, Elemwise) and node.op.scalar_op == scal.add


class Steps:
    """The inner graph of a Scan, and a copy of it with joined products.

    Attributes:
        copies: maps an inner variable to its copy or replacement.
        new_inputs: maps an additional inner input of the copy to its outer variable.
        weights: maps an inner matrix that is the same in all steps to its outer variable.
        order: the nodes in topological order.
        products: maps the output of a product to the product.
        clients: maps a variable to a list: the nodes that read the variable, and a None for each
            position of the variable among the outputs of the steps.
    """

    def __init__(self, node: Apply) -> None:
        """Copy the inputs of a Scan's inner graph, and find the products.

        Args:
            node: the node of the Scan.
        """
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
            if (product := find_product(inner_node, self.weights))
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
        """Join the weights of products along an axis, outside of the Scan.

        Returns:
            Two new inner inputs: the joined weights, and a vector of their lengths along the axis.
        """
        outers = [self.weights[product.weights] for product in products]
        lengths = tensor.stack([Shape_i(axis)(outer) for outer in outers])
        inputs = {safe_new(outer): outer for outer in (tensor.join(axis, *outers), lengths)}
        self.new_inputs.update(inputs)
        return list(inputs)

    def replace_products(self, outs: Sequence[Any]) -> None:
        """Replace several products of one value by the parts of one product.

        Args:
            outs: the outputs of the products.
        """
        # Products by the same weights have the same part.
        product_by_weights = {self.products[out].weights: self.products[out] for out in outs}
        products = list(product_by_weights.values())
        first = products[0].first
        weights, lengths = self.join_weights(products, int(first))
        (value,) = self.copy([products[0].value])
        joined = multiply(value, weights, first)
        axis = joined.ndim - 1 if first else 0
        parts = tensor.split(joined, lengths, len(products), axis)
        part_of = dict(zip(product_by_weights, parts, strict=True))
        self.copies.update((out, part_of[self.products[out].weights]) for out in outs)

    def replace_sum(self, total: Any, terms: Sequence[Any], outs: Sequence[Any]) -> None:
        """Replace products that are terms of a sum by one product of their joined values.

        Args:
            total: the sum.
            terms: all terms of the sum.
            outs: the terms that are products to replace. The values are the first factors of all
                these products, or the second factors of all of them.
        """
        products = [self.products[out] for out in outs]
        first = products[0].first
        weights, lengths = self.join_weights(products, 1 - first)
        values = self.copy(product.value for product in products)
        value = JoinAs(values[0].ndim - 1 if first else 0)(lengths, *values)
        other_terms = self.copy(x for x in terms if x not in outs)
        self.copies[total] = tensor.add(multiply(value, weights, first), *other_terms)

    def is_term(self, x: Any, total: Any) -> bool:
        """Return whether a term of a sum has the sum's type and only the sum reads it."""
        return x.type == total.type and len(self.clients[x]) == 1

    def list_terms(self, total: Any) -> list[Any]:
        """Return the terms of a sum; replace a term that is itself a sum by its terms."""
        terms: list[Any] = []
        for x in total.owner.inputs:
            terms += self.list_terms(x) if is_sum(x.owner) and self.is_term(x, total) else [x]
        return terms

    def is_part_of_sum(self, total: Any) -> bool:
        """Return whether a sum is a term that list_terms of another sum replaces by its terms."""
        client = self.clients[total][0]
        return is_sum(client) and self.is_term(total, client.outputs[0])


def join_products(fgraph: FunctionGraph, node: Apply) -> None:
    """Replace a Scan by a Scan with fewer matrix products, if products can be joined."""
    steps = Steps(node)
    # Do not join in a graph with IfElse: the joined product would always compute the products of a
    # branch that may not be needed.
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
            terms = steps.list_terms(out)
            joinable = [
                x
                for x in terms
                if x in steps.products and x not in steps.copies and steps.is_term(x, out)
            ]
            for first in (True, False):
                outs = [x for x in joinable if steps.products[x].first == first]
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
