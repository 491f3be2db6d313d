"""Optimizer that computes outer products in a Scan's steps by elementwise multiplication.

A product of a column and a row is an outer product. BLAS's ger adds it to a matrix, which must
first be filled with zeros or copied. In the steps of a Scan, most matrices are small, and each of
these passes has an overhead. Theano fuses an elementwise product with the operations that read it,
so that one loop computes all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from theano import gof, tensor
from theano.scan_module.graphs import copy_graph, copy_scan
from theano.scan_module.scan_rewriter import ScanRewriter
from theano.scan_module.scan_utils import safe_new

if TYPE_CHECKING:
    from theano.gof import Apply
    from theano.gof.fg import FunctionGraph


def register(db: Any) -> None:
    """Register the optimizer after the optimizers that move products out of Scans."""
    optimizer = ScanRewriter(replace_outer_products)
    db.register("scanOp_outer_products", optimizer, 7, "fast_run", "scan")


def is_product(node: Apply) -> bool:
    """Return whether a node multiplies matrices or vectors."""
    return isinstance(node.op, tensor.Dot)


def is_outer_product(node: Apply) -> bool:
    """Return whether a node multiplies a column by a row of floats."""
    if not is_product(node):
        return False
    lhs, rhs = node.inputs
    return (
        lhs.broadcastable == (False, True)
        and rhs.broadcastable == (True, False)
        and lhs.dtype == rhs.dtype
        and lhs.dtype in {"float32", "float64"}
    )


def replace_outer_products(fgraph: FunctionGraph, node: Apply) -> None:
    """Replace the outer products that no other product reads."""
    scan: Any = node.op
    order = gof.graph.io_toposort(scan.inputs, scan.outputs)
    factors = {x for inner_node in order if is_product(inner_node) for x in inner_node.inputs}
    copies = {x: safe_new(x) for x in scan.inputs}
    products = [x for x in order if is_outer_product(x) and x.outputs[0] not in factors]
    for product in products:
        copy_graph(product.inputs, copies, strict=True, share_inputs=True)
        lhs, rhs = (copies[x] for x in product.inputs)
        copies[product.outputs[0]] = lhs * rhs
    if products:
        fgraph.replace_all_validate_remove(
            list(zip(node.outputs, copy_scan(node, copies, {}, {}), strict=True)),
            remove=[node],
            reason="scanOp_outer_products",
        )
