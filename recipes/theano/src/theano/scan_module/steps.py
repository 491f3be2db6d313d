"""What the steps of a Scan need to run in C, or not at all."""

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
    """Return the nodes of the inner function that a step need not compute again.

    Nearly all others were pushed out of the inner graph. These came when the inner function was
    optimized: transposed weights for BLAS, their shapes, memory for results.

    Returns:
        nodes that have the same inputs in all steps, and whose outputs stay as they are until the
        next: they are neither an output of the inner function, nor memory that a node writes to.
        AllocEmpty's may be, as what is in it means nothing.
    """
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    # The variables whose memory a variable may share.
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
    kept = set(scan.inner_non_seqs(fgraph.inputs))

    def stays(var: Variable) -> bool:
        return var not in fgraph.outputs and id(fn.storage_map[var]) not in cleared

    found = set()
    for node in fn.nodes:
        if (
            all(var in kept or isinstance(var, Constant) for var in node.inputs)
            and all(stays(var) for var in node.outputs)
            and (
                isinstance(node.op, tensor.AllocEmpty)
                or not any(roots[var] & written for var in node.outputs)
            )
        ):
            found.add(node)
            kept.update(node.outputs)
    return found


def compiled_steps(scan: Scan) -> Callable[..., Any] | None:
    """Return the function that runs the steps in C, for execute.

    None if this is a source tree, without the compiled extension.
    """
    try:
        from .scan_steps import run  # noqa: PLC0415 (not in a source tree)
    except ImportError:
        return None

    # Rows of an output and a tap; of a mit-mot's output, a tap of it, and the number of the tap
    # among all, or -1 if the inner function does not update it in place.
    taps: list[tuple[int, int]] = []
    written: list[tuple[int, int, int]] = []
    for output, of_output in enumerate(scan.tap_array[: scan.n_outs]):
        first = scan.n_seqs + len(taps)
        if output < scan.n_mit_mot:
            for tap in scan.mit_mot_out_slices[output]:
                updated = scan.mitmots_preallocated[len(written)]
                written.append((output, tap, first + of_output.index(tap) if updated else -1))
        taps += [(output, tap) for tap in of_output]
    return partial(
        run,
        inputs=[each.storage for each in scan.fn.input_storage],
        results=[each.storage for each in scan.fn.output_storage],
        n_seqs=scan.n_seqs,
        n_mit_mot=scan.n_mit_mot,
        n_outs=scan.n_outs,
        n_shared=scan.n_shared_outs,
        as_while=scan.as_while,
        taps=np.array(taps, dtype=np.intp),
        written=np.array(written, dtype=np.intp),
        vectors=np.array(scan.vector_outs, dtype=np.intp),
    )


def address_of(array: Any) -> Any:
    """Return where a device's array, a GpuArray, has its memory, as a number.

    OpenCL knows no address: that of the memory's object, with the offset in it in bytes, is as good
    a name.
    """
    if array.context.kind == b"cuda":
        return array.gpudata
    return array.base_data + array.offset
