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
    """Return a function that runs the steps of a Scan in C.

    The function is scan_steps.run with the arguments that are the same in each call of the Scan. If
    the virtual machine supports it, and the flag scan.replay is set, the function replays steps
    (replay.py). Then it computes nodes whose results are the same in all steps only in the first
    step.

    Returns:
        The function, or None if scan_steps is not compiled, as in a source tree.
    """
    try:
        from .scan_steps import run  # noqa: PLC0415 (not in a source tree)
    except ImportError:
        return None

    # The rows of `taps` are (output, tap).
    # The rows of `written`, for mit-mot outputs, are (output, tap, input): the step overwrites the
    # inner input of this number with the result, unless the number is -1.
    taps: list[tuple[int, int]] = []
    written: list[tuple[int, int, int]] = []
    for output, output_taps in enumerate(scan.tap_array[: scan.n_outs]):
        first = scan.n_seqs + len(taps)
        if output < scan.n_mit_mot:
            for tap in scan.mit_mot_out_slices[output]:
                updated = scan.mitmots_preallocated[len(written)]
                written.append((output, tap, first + output_taps.index(tap) if updated else -1))
        taps += [(output, tap) for tap in output_taps]
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
        """Run the steps. Afterwards, forget the record: the next call must compute all nodes."""
        try:
            n_steps: int = run_in_c(**arguments)
        finally:
            fn.repeated = False
            thunks_ext.forget(fn.replay)
        return n_steps

    return run_steps


def address_of(array: Any) -> Any:
    """Return a number that is equal for GpuArrays at the same memory address.

    With CUDA, it is the device address. OpenCL has no device addresses. There, it is the sum of the
    address of the buffer's handle and the offset in bytes.
    """
    if array.context.kind == b"cuda":
        return array.gpudata
    return array.base_data + array.offset
