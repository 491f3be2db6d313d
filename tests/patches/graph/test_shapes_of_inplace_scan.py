"""graph/structural-hash-of-scan.patch: a Scan that becomes in-place keeps its inferred shapes.

Without the patch, each attempt to make another output in-place infers all shapes of the inner graph
again.
"""

import numpy as np
import theano
import theano.tensor as tt
from theano.scan_module import scan_op, scan_opt, scan_utils
from theano.scan_module.scan_op import Scan


def build_scan(until=False):
    """Return the inputs and the outputs of a scan, which may have a condition."""
    x, steps = tt.dvector("x"), tt.iscalar("steps")

    def step(first, second):
        states = [first + 1, first * second]
        return (states, scan_utils.until(first.sum() > 40)) if until else states

    outs, _ = theano.scan(step, outputs_info=[x, x * 0 + 1], n_steps=steps)
    return x, steps, outs


def test_no_shape_is_inferred_again(monkeypatch):
    inferred = []
    attempt = scan_opt.ScanInplaceOptimizer.attempt_scan_inplace
    infer_shape = scan_utils.infer_shape

    def watched(*args):
        with monkeypatch.context() as context:
            context.setattr(
                scan_op.scan_utils,
                "infer_shape",
                lambda **kwargs: inferred.append(kwargs) or infer_shape(**kwargs),
            )
            return attempt(*args)

    monkeypatch.setattr(scan_opt.ScanInplaceOptimizer, "attempt_scan_inplace", watched)
    x, steps, outs = build_scan()
    mode = theano.compile.get_mode("FAST_RUN").clone(linker="py")
    function = theano.function([x, steps], outs, mode=mode)
    assert find_inplace_outputs(function) == {0, 1}
    assert inferred == []


def test_shapes_of_an_in_place_scan_with_until_are_correct():
    x, steps, outs = build_scan(until=True)
    mode = theano.compile.get_mode("FAST_RUN").clone(linker="py")
    function = theano.function([x, steps], [*outs, outs[0].shape], mode=mode)
    values = function(np.arange(3.0), 30)
    assert find_inplace_outputs(function) == {0, 1}
    assert values[2].tolist() == [14, 3] == [*values[0].shape]


def find_inplace_outputs(function):
    """Return the outputs that the function's only Scan computes in-place."""
    nodes = function.maker.fgraph.toposort()
    (scan,) = [node.op for node in nodes if isinstance(node.op, Scan)]
    return set(scan.destroy_map)
