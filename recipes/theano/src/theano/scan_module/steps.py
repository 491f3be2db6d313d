"""Preparation of the loops in C and in Python that run a Scan's steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import config
from theano.gof import link
from theano.scan_module import replay

if TYPE_CHECKING:
    from theano.scan_module.scan_op import Scan


def make_run_steps(scan: Scan) -> Callable[..., Any] | None:
    """Return a function that runs the steps of a Scan in C.

    The function is scan_steps.run with the arguments that are the same in each call of the Scan. If
    the virtual machine supports replay, and the flag scan.replay is set, the function replays steps
    (replay.py). A node whose results are the same in all steps is then computed in the first step
    only.

    Returns:
        The function, or None if scan_steps is not compiled, as in a source tree.
    """
    # An outer function replays the GPU nodes of all steps, so the inner function does not.
    scan.fn.fn = getattr(scan.fn.fn, "plain", scan.fn.fn)
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

    fn.replay = thunks_ext.make_replay(*replay.describe_scan(scan))

    def run_steps(**arguments: Any) -> int:
        """Run the steps. Afterwards, forget the record: the next call must compute all nodes."""
        try:
            n_steps: int = run_in_c(**arguments)
        finally:
            fn.repeated = False
            thunks_ext.forget(fn.replay)
        return n_steps

    return run_steps


def make_call(function: Any, seconds: list[float]) -> Callable[[], None]:
    """Return a function without arguments that computes the outputs of a step.

    The returned function calls a Scan's inner function. If the virtual machine leaves updates to
    its caller, the returned function copies the last outputs to the inputs that have an update.

    Args:
        function: the inner function.
        seconds: a list of one number, to which each call adds its time.
    """
    fn = function.fn
    updates = []
    if getattr(fn, "need_update_inputs", True):
        updated = [
            storage
            for inp, storage in zip(
                function.maker.expanded_inputs, function.input_storage, strict=False
            )
            if inp.update is not None
        ]
        updates = list(zip(updated[::-1], function.output_storage[::-1], strict=False))

    def call() -> None:
        start = time.time()
        try:
            fn()
        except Exception:
            # Linkers in Python add the node to the exception, linkers in C do not.
            if not hasattr(fn, "position_of_error"):
                raise
            # The C linker has no thunks, so the message has no shapes and strides.
            thunks = getattr(fn, "thunks", None)
            node = fn.nodes[fn.position_of_error]
            link.raise_with_op(node, thunks and thunks[fn.position_of_error])
        seconds[0] += time.time() - start
        for storage, output in updates:
            storage.data = output.data

    return call


def make_room(array: Any, type: Any, length: int, value: Any) -> Any:
    """Return an array for all values of an output, whose first dimension is the step.

    Args:
        array: an array of an earlier call, which is reused if its size and type fit, or None.
        type: the type of the output.
        length: the number of values.
        value: the first value.
    """
    if (
        array is None
        or array.shape[0] < length
        or array.shape[1:] != value.shape
        or array.dtype != value.dtype
    ):
        return type.value_zeros((length, *value.shape))
    return array if array.shape[0] == length else array[:length]


def address_of(array: Any) -> Any:
    """Return a number that is equal for GpuArrays at the same memory address.

    With CUDA, the number is the device address. OpenCL has no device addresses: the number is the
    sum of the address of the buffer's handle and the offset in bytes.
    """
    if array.context.kind == b"cuda":
        return array.gpudata
    return array.base_data + array.offset
