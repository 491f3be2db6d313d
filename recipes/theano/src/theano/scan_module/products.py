"""Products of a Scan's steps by several matrices of weights, each computed as one.

What goes into several gates or layers is multiplied by the weights of each, and the gradient adds
products by all of them. Where states are small, a call of BLAS takes longer than what it computes.
Weights are the same in all steps: they are joined once, outside of the Scan.
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
    """Compute products by several matrices of a Scan's weights as one."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Have replacements validated."""
        fgraph.attach_feature(gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Join the products of all Scans of the graph."""
        for node in fgraph.toposort():
            if isinstance(node.op, scan_op.Scan):
                join_products(fgraph, node)


def register(db: Any) -> None:
    """Have it done after all that leaves Scans has; optimizer_excluding knows its names."""
    db.register("scanOp_join_products", JoinProducts(), 6, "fast_run", "more_mem", "scan")


class Product(NamedTuple):
    """A product of the steps.

    Attributes:
        value: a vector or matrix.
        weights: a matrix.
        first: whether the value is the first factor.
    """

    value: Any
    weights: Any
    first: bool


def product_of(node: Apply, weights: Any) -> Product | None:
    """The product that a node computes of a value and one of the weights, or None."""
    if not isinstance(node.op, tensor.Dot):
        return None
    left, right = node.inputs
    if left.dtype != right.dtype or (left in weights) == (right in weights):
        return None
    return Product(left, right, True) if right in weights else Product(right, left, False)


def multiply(value: Any, weights: Any, first: bool) -> Any:
    """Multiply a value by weights; whether it is the first factor."""
    return tensor.dot(value, weights) if first else tensor.dot(weights, value)


def is_sum(node: Any) -> bool:
    """Whether a node, or None, adds tensors."""
    return node is not None and isinstance(node.op, Elemwise) and node.op.scalar_op == scal.add


class Steps:
    """What a Scan's steps compute, and a copy of it with products joined.

    Attributes:
        copies: what stands for each variable.
        new_inputs: what the copy is given besides, and what that is outside.
        weights: what may be joined, and what it is outside.
        products: what multiplies by weights.
    """

    def __init__(self, node: Apply) -> None:
        """Copy the inputs of the steps."""
        scan = node.op
        inner, outer = scan.inner_non_seqs(scan.inputs), scan.outer_non_seqs(node.inputs)
        self.copies = {x: safe_new(x) for x in scan.inputs}
        self.new_inputs: dict[Any, Any] = {}
        self.weights = {
            x: like
            for x, like in zip(inner, outer, strict=True)
            if isinstance(x, tensor.TensorVariable)
            and x.broadcastable == (False, False)
            and x.dtype in {"float32", "float64"}
        }
        self.order = gof.graph.io_toposort(scan.inputs, scan.outputs)
        self.products = {
            each.outputs[0]: product
            for each in self.order
            if (product := product_of(each, self.weights))
        }
        self.clients: dict[Any, list[Any]] = defaultdict(list)
        for each in self.order:
            for x in each.inputs:
                self.clients[x].append(each)
        for x in scan.outputs:
            self.clients[x].append(None)

    def copy(self, variables: Iterable[Any]) -> list[Any]:
        """Copy what the steps compute."""
        variables = list(variables)
        copy_graph(variables, self.copies, strict=True, share_inputs=True)
        return [self.copies[x] for x in variables]

    def join_weights(self, products: Sequence[Product], axis: int) -> list[Any]:
        """Join the weights of products outside: inputs for them and their lengths."""
        outers = [self.weights[each.weights] for each in products]
        lengths = tensor.stack([Shape_i(axis)(outer) for outer in outers])
        made = {safe_new(outer): outer for outer in (tensor.join(axis, *outers), lengths)}
        self.new_inputs.update(made)
        return list(made)

    def replace_products(self, outs: Sequence[Any]) -> None:
        """Compute products of one value by one product of it."""
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
        """Compute products that a sum adds by one product, of all their values."""
        products = [self.products[out] for out in outs]
        one = products[0]
        weights, lengths = self.join_weights(products, 1 - one.first)
        values = self.copy(each.value for each in products)
        value = JoinAs(values[0].ndim - 1 if one.first else 0)(lengths, *values)
        others = self.copy(x for x in terms if x not in outs)
        self.copies[total] = tensor.add(multiply(value, weights, one.first), *others)

    def is_term(self, x: Any, total: Any) -> bool:
        """Whether what a sum adds is of its type, and nothing else reads it."""
        return x.type == total.type and len(self.clients[x]) == 1

    def terms(self, total: Any) -> list[Any]:
        """What a sum adds; a sum among that is taken apart."""
        terms: list[Any] = []
        for x in total.owner.inputs:
            terms += self.terms(x) if is_sum(x.owner) and self.is_term(x, total) else [x]
        return terms

    def is_part_of_sum(self, total: Any) -> bool:
        """Whether a sum is taken apart by another one."""
        client = self.clients[total][0]
        return is_sum(client) and self.is_term(total, client.outputs[0])


def join_products(fgraph: FunctionGraph, node: Apply) -> None:
    """Replace a Scan by one that has fewer products."""
    steps = Steps(node)
    # Of what is lazy, some may never be computed.
    if len(steps.products) < 2 or any(isinstance(each.op, IfElse) for each in steps.order):
        return
    of_one_value: dict[Any, list[Any]] = defaultdict(list)
    for out, product in steps.products.items():
        of_one_value[product.value, product.first].append(out)
    for each in steps.order:
        out = each.outputs[0]
        if out in steps.copies:
            continue
        if out in steps.products:
            product = steps.products[out]
            outs = of_one_value[product.value, product.first]
            if len({steps.products[x].weights for x in outs}) > 1:
                steps.replace_products(outs)
        # On a GPU there is no JoinAs.
        elif is_sum(each) and not steps.is_part_of_sum(out) and config.device == "cpu":
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
