"""build/inner-functions-ahead.patch optimizes graphs of Scans while g++ compiles other modules.

Without the patch, a Scan's inner graph is optimized only after the modules of earlier nodes are
compiled. g++ is idle during this optimization.
"""

import copy
import pickle

import numpy as np
import pytest
import theano
import theano.tensor as tt
from theano.gof import early_compilation
from theano.scan_module.scan_op import Scan

# Prints the names of events in order. compile: g++ starts. optimize_inner: Theano optimizes the
# inner graph of a Scan. wait: Theano waits for a module.
EVENTS = """
import theano, theano.tensor as tt
from theano.gof import compilation
from theano.scan_module.scan_op import Scan

def note(owner, name):
    original = getattr(owner, name)
    def noting(*args):
        print(name)
        return original(*args)
    setattr(owner, name, noting)

x = tt.dvector()
{graph}
note(compilation.CompilationPool, "compile")
note(compilation.Compilation, "wait")
note(Scan, "optimize_inner")
theano.function([x], results)
"""
SIDE_BY_SIDE = """
def scanned(steps):
    return theano.scan(lambda last: tt.tanh(last * x) + tt.cos(last.sum()) * steps,
                       outputs_info=x, n_steps=steps)[0]
results = [scanned(2), scanned(3), tt.exp(x).sum(), tt.sin(x).prod()]
"""
ONE_IN_ANOTHER = """
def outer(last):
    results, _ = theano.scan(lambda v: tt.cos(v.sum()) - v, outputs_info=last, n_steps=2)
    return tt.tanh(results[-1] * x)
results = [theano.scan(outer, outputs_info=x, n_steps=2)[0], tt.exp(x).sum(), tt.sin(x).prod()]
"""


@pytest.mark.parametrize("graph", [SIDE_BY_SIDE, ONE_IN_ANOTHER], ids=["side by side", "nested"])
def test_inner_graphs_are_optimized_before_the_first_wait(run_python, tmp_path, graph):
    result = run_python(EVENTS.format(graph=graph), flags=f"base_compiledir={tmp_path}")
    assert result.returncode == 0, result.stderr
    events = result.stdout.split()
    first_wait = events.index("wait")
    assert events[:2] == ["compile", "optimize_inner"]
    assert events[:first_wait].count("optimize_inner") == 2
    assert events[:first_wait].count("compile") == 3
    assert set(events[first_wait:]) == {"wait"}


def test_the_largest_inner_graph_is_optimized_first(monkeypatch):
    """The largest inner graph is first, so its modules compile while the others are optimized."""
    sizes = []
    optimize = Scan.optimize_inner
    monkeypatch.setattr(
        Scan, "optimize_inner", lambda op: sizes.append(len(op.outputs)) or optimize(op)
    )
    x = tt.dvector()
    few, _ = theano.scan(lambda last: last * x, outputs_info=x, n_steps=2)
    many, _ = theano.scan(
        lambda *last: [tt.sin(state * x) for state in last],
        outputs_info=[x, x + 1, x + 2],
        n_steps=3,
    )
    function = theano.function([x], [few[-1], *many])
    assert sizes == [3, 1]
    assert function([2.0])[0] == [8.0]


def build_outputs(x):
    """Return the states of a scan, and a sum that no scan computes."""
    results, _ = theano.scan(lambda last: tt.tanh(last * x), outputs_info=x, n_steps=3)
    return results, tt.exp(x).sum() + tt.cosh(x).prod()


def test_outputs_of_a_scan_and_of_other_nodes_have_correct_values():
    x = tt.dvector()
    value = last = np.array([0.1, 0.2])
    expected = []
    for _ in range(3):
        last = np.tanh(last * value)
        expected.append(last)
    values, total = theano.function([x], build_outputs(x))(value)
    assert np.allclose(values, expected)
    assert np.isclose(total, np.exp(value).sum() + np.cosh(value).prod())


def test_a_failed_optimization_leaves_no_state(monkeypatch):
    def refuse(_):
        raise ValueError("refused")

    monkeypatch.setattr(Scan, "optimize_inner", refuse)
    x = tt.dvector()
    results, outside = build_outputs(x)
    with pytest.raises(ValueError, match="refused") as info:
        theano.function([x], [results, outside])
    assert isinstance(info.value.args[1].op, Scan), "the error does not say for which node"
    assert early_compilation.linkers == early_compilation.inner_functions == {}


def test_the_inner_profile_has_the_times_of_optimizing_and_linking():
    x = tt.dvector()
    results, outside = build_outputs(x)
    with theano.change_flags(profile=True):
        function = theano.function([x], [results, outside])
    (node,) = [node for node in function.maker.fgraph.apply_nodes if isinstance(node.op, Scan)]
    profile = node.op.fn.profile
    assert profile.compile_time > profile.optimizer_time > 0
    assert profile.compile_time > profile.linker_time > 0


def test_a_scan_without_c_thunks_needs_no_compiler():
    x = tt.dvector()
    results, _ = theano.scan(lambda last: last * 0.5, outputs_info=x, n_steps=2)
    mode = theano.Mode(linker=theano.gof.vm.VM_Linker(c_thunks=False, use_cloop=False))
    function = theano.function([x], results, mode=mode)
    assert function([1.0])[:, 0].tolist() == [0.5, 0.25]


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_a_copied_function_has_correct_gradients(clone):
    """A deep copy, or a loaded pickle, of the gradient of a scan computes the correct gradient."""
    x, first = tt.dvector(), tt.dscalar()
    outputs, _ = theano.scan(lambda a, p: [a, p], sequences=x, outputs_info=[first, None])
    function = theano.function([x, first], tt.grad(outputs[1].sum(), x), on_unused_input="ignore")
    assert list(clone(function)([1.0, 2.0, 3.0], 0.0)) == [1, 1, 0]
