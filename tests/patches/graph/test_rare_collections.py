"""graph/rare-collections.patch runs the garbage collector rarely during import and compilation.

Without the patch, Python walks all objects of a compilation hundreds of times.
"""

import gc
import threading
import weakref
from pathlib import Path

import pytest
import theano
from theano import tensor
from theano.misc.garbage import rare_collections


@pytest.fixture(autouse=True)
def threshold():
    """Set an unusual threshold, and restore it after the test."""
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield (701, 11, 12)
    gc.set_threshold(*before)


class Probe(theano.gof.Optimizer):
    """An optimizer that records the collector's threshold, and raises an error if requested."""

    def __init__(self, error=None):
        self.error = error

    def apply(self, fgraph):
        self.threshold = gc.get_threshold()
        if self.error:
            raise self.error


def compile_with(probe):
    x = tensor.dscalar()
    theano.function([x], 2 * x, mode=theano.Mode("py", probe))


def test_the_threshold_is_higher_while_compiling(threshold):
    probe = Probe()
    compile_with(probe)
    assert probe.threshold[0] == rare_collections.threshold
    assert gc.get_threshold() == threshold


def test_the_threshold_is_restored_after_an_error(threshold):
    with pytest.raises(ZeroDivisionError):
        compile_with(Probe(ZeroDivisionError()))
    assert gc.get_threshold() == threshold


class Recorder(theano.Op):
    """An op that records the collector's threshold when its gradient is made."""

    __props__ = ()

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def grad(self, inputs, slopes):
        self.threshold = gc.get_threshold()
        return slopes


def test_the_threshold_is_higher_while_gradients_are_made(threshold):
    op, x = Recorder(), tensor.dscalar()
    slope = theano.grad(op(2 * x), x)
    assert op.threshold[0] == rare_collections.threshold
    assert gc.get_threshold() == threshold
    # The trace has the line of this program, and no function that sets the threshold.
    names = [Path(frame[0]).name for frame in slope.tag.trace[-1]]
    assert Path(__file__).name in names
    assert not {"contextlib.py", "garbage.py"} & {*names}


def test_the_threshold_is_higher_while_the_graph_is_copied(threshold, monkeypatch):
    thresholds = []
    clone = theano.gof.Apply.clone_with_new_inputs
    monkeypatch.setattr(
        theano.gof.Apply,
        "clone_with_new_inputs",
        lambda *args, **kwargs: thresholds.append(gc.get_threshold()) or clone(*args, **kwargs),
    )
    compile_with(Probe())
    assert {first for first, *_ in thresholds} == {rare_collections.threshold}
    assert gc.get_threshold() == threshold


def test_a_collector_that_is_off_stays_off():
    gc.set_threshold(0)
    probe = Probe()
    compile_with(probe)
    assert probe.threshold[0] == gc.get_threshold()[0] == 0


def test_the_end_of_the_last_context_restores_the_threshold(threshold):
    """Contexts may be nested, and active in several threads."""
    inside, leave = threading.Event(), threading.Event()

    def use_context():
        with rare_collections:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=use_context)
    with rare_collections, rare_collections:
        thread.start()
        assert inside.wait(10)
    assert gc.get_threshold()[0] == rare_collections.threshold
    leave.set()
    thread.join(10)
    assert gc.get_threshold() == threshold


def test_new_objects_move_to_the_oldest_generation(threshold, monkeypatch):
    monkeypatch.setattr(rare_collections, "spared", 0)
    kept = []
    with rare_collections:
        kept.extend([] for _ in range(5000))
    young = {id(item) for generation in (0, 1) for item in gc.get_objects(generation)}
    assert not young.intersection(map(id, kept))
    assert rare_collections.spared >= 5000


def test_garbage_is_collected_after_threshold_new_objects(threshold, monkeypatch):
    monkeypatch.setattr(rare_collections, "spared", 0)
    monkeypatch.setattr(rare_collections, "threshold", 1000)
    cyclic = Probe()
    cyclic.itself = cyclic
    gone = weakref.ref(cyclic)
    with rare_collections:
        del cyclic
    assert gone() is not None
    with rare_collections:
        kept = [[] for _ in range(2000)]
    assert gone() is None
    assert len(kept) == 2000


def test_frozen_objects_stay_frozen(threshold):
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with rare_collections:
            pass
        # Some frozen objects are freed inside of the context.
        assert gc.get_freeze_count() > frozen / 2 > 0
    finally:
        gc.unfreeze()


IMPORT = """
import gc, sys

class Finder:
    def find_spec(name, path, target=None):
        if name.startswith("theano.tensor.nnet"):
            thresholds.add(gc.get_threshold()[0])

thresholds = set()
sys.meta_path.insert(0, Finder)
gc.set_threshold(701, 11, 12)
try:
    import theano
except ImportError as error:
    print(error.name)
print(gc.get_threshold(), thresholds)
"""


@pytest.mark.parametrize(("missing", "error"), [("none", ""), ("tensor", "theano.tensor\n")])
def test_the_threshold_is_higher_during_import(run_python, missing, error):
    result = run_python(f"import sys; sys.modules['theano.{missing}'] = None" + IMPORT)
    thresholds = set() if error else {rare_collections.threshold}
    assert result.stdout == f"{error}(701, 11, 12) {thresholds}\n", result.stderr
