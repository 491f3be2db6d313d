"""Preparation of a Scan's steps: the C loop, and the nodes that only the first step computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import tensor
from theano.gof import Constant

if TYPE_CHECKING:
    from theano.gof import Apply, Variable
    from theano.scan_module.scan_op import Scan


def invariant_nodes(scan: Scan) -> set[Apply]:
    """Return the nodes of the inner function whose results are the same in all steps.

    Most such nodes were pushed out of the inner graph. The optimization of the inner function adds
    new ones: transposed weights for BLAS, their shapes, and memory for results.

    Returns:
        Nodes with the same inputs in all steps, whose outputs no step changes: the outputs are no
        outputs of the inner function, and no node writes to their memory. Nodes may write to the
        memory of AllocEmpty, because its content is undefined.
    """
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    # By variable: the variables whose memory it may share.
    roots: dict[Variable, set[Variable]] = {}
    written: set[Variable] = set()
    for node in fn.nodes:
        views = getattr(node.op, "view_map", {})
        destroyed = getattr(node.op, "destroy_map", {})
        for i, var in enumerate(node.outputs):
            shared = [node.inputs[j] for j in views.get(i, []) + destroyed.get(i, [])]
            roots[var] = set().union(*(roots.get(one, [one]) for one in shared)) or {var}
        for idxs in destroyed.values():
            for one in (node.inputs[j] for j in idxs):
                written.update(roots.get(one, [one]))
    cleared = {id(cell) for cell in fn.pre_call_clear}
    invariant = set(scan.inner_non_seqs(fgraph.inputs))

    def persists(var: Variable) -> bool:
        return var not in fgraph.outputs and id(fn.storage_map[var]) not in cleared

    nodes = set()
    for node in fn.nodes:
        if (
            all(var in invariant or isinstance(var, Constant) for var in node.inputs)
            and all(persists(var) for var in node.outputs)
            and (
                isinstance(node.op, tensor.AllocEmpty)
                or not any(roots[var] & written for var in node.outputs)
            )
        ):
            nodes.add(node)
            invariant.update(node.outputs)
    return nodes


def compiled_steps(scan: Scan) -> Callable[..., Any] | None:
    """Return a function that runs the steps in C: `run` with the arguments that stay the same.

    If the virtual machine supports it, nodes whose results are the same in all steps are computed
    in the first step only.

    Returns:
        The function, or None in a source tree, which has no compiled extension.
    """
    try:
        from .scan_steps import run  # noqa: PLC0415 (not in a source tree)
    except ImportError:
        return None

    # taps: rows of an output's number and a tap. written, for mit-mots: rows of an output's number,
    # a tap, and the number of the inner input that the step updates in place for it, or -1.
    taps: list[tuple[int, int]] = []
    written: list[tuple[int, int, int]] = []
    for output, of_output in enumerate(scan.tap_array[: scan.n_outs]):
        first = scan.n_seqs + len(taps)
        if output < scan.n_mit_mot:
            for tap in scan.mit_mot_out_slices[output]:
                updated = scan.mitmots_preallocated[len(written)]
                written.append((output, tap, first + of_output.index(tap) if updated else -1))
        taps += [(output, tap) for tap in of_output]
    fn = scan.fn.fn
    repeats = hasattr(fn, "invariant")
    run_in_c = partial(
        run,
        repeating=fn if repeats else None,
        inputs=[container.storage for container in scan.fn.input_storage],
        results=[container.storage for container in scan.fn.output_storage],
        n_seqs=scan.n_seqs,
        n_mit_mot=scan.n_mit_mot,
        n_outs=scan.n_outs,
        n_shared=scan.n_shared_outs,
        as_while=scan.as_while,
        taps=np.array(taps, dtype=np.intp),
        written=np.array(written, dtype=np.intp),
        vectors=np.array(scan.vector_outs, dtype=np.intp),
    )
    if not repeats:
        return run_in_c
    nodes = invariant_nodes(scan)
    fn.invariant = bytes(node in nodes for node in fn.nodes)

    def run_steps(**arguments: Any) -> int:
        """Run the steps; afterwards, let the next call compute all nodes again."""
        try:
            n_steps: int = run_in_c(**arguments)
        finally:
            fn.repeated = False
        return n_steps

    return run_steps


def address_of(array: Any) -> Any:
    """Return the memory address of a device array, a GpuArray.

    OpenCL has no addresses. There, the sum of the memory object's address and the offset in bytes
    serves to compare two arrays.
    """
    if array.context.kind == b"cuda":
        return array.gpudata
    return array.base_data + array.offset
