"""Preparation of the C loop that runs a Scan's steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import config
from theano.scan_module import replay

if TYPE_CHECKING:
    from theano.scan_module.scan_op import Scan


def compiled_steps(scan: Scan) -> Callable[..., Any] | None:
    """Return a function that runs the steps in C: `run` with the arguments that stay the same.

    If the virtual machine supports it, it replays steps, and computes nodes whose results are the
    same in all steps in the first step only.

    Returns:
        The function, or None in a source tree, which has no compiled extension.
    """
    try:
        from .scan_steps import run  # noqa: PLC0415 (not in a source tree)
    except ImportError:
        return None

    # taps: rows (output, tap). written, for mit-mots: rows (output, tap, input); the step
    # overwrites this inner input with the result, unless it is -1.
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
    can_replay = hasattr(fn, "replay") and config.scan.replay
    run_in_c = partial(
        run,
        repeating=fn if can_replay else None,
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
    if not can_replay:
        return run_in_c
    from theano.tensor import thunks_ext  # noqa: PLC0415 (not in a source tree)

    fn.replay = thunks_ext.make_replay(*replay.describe(scan))

    def run_steps(**arguments: Any) -> int:
        """Run the steps; afterwards, let the next call compute all nodes again."""
        try:
            n_steps: int = run_in_c(**arguments)
        finally:
            fn.repeated = False
            thunks_ext.forget(fn.replay)
        return n_steps

    return run_steps


def address_of(array: Any) -> Any:
    """Return the memory address of a device array, a GpuArray.

    OpenCL has no device addresses. There, the sum of the buffer handle's address and the offset in
    bytes serves to compare two arrays.
    """
    if array.context.kind == b"cuda":
        return array.gpudata
    return array.base_data + array.offset
