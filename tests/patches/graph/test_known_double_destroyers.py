"""graph/cycles-depth-first.patch does not try to merge two variables that are both destroyed.

Without the patch, Theano merges the variables, finds that the graph is inconsistent, and undoes the
merge.
"""

import pytest
import theano
import theano.tensor as tt
from theano.gof import InconsistencyError, toolbox


@pytest.fixture
def undone(monkeypatch):
    """Return a list to which the reason of each undone replacement is appended."""
    reasons = []
    replace = toolbox.ReplaceValidate.replace_all_validate

    def record_reason(self, fgraph, replacements, reason=None, verbose=None):
        try:
            return replace(self, fgraph, replacements, reason, verbose)
        except InconsistencyError:
            reasons.append(reason)
            raise

    monkeypatch.setattr(toolbox.ReplaceValidate, "replace_all_validate", record_reason)
    return reasons


def test_no_merge_is_undone(undone):
    # Each product overwrites its own AllocEmpty. All of these nodes are equal.
    x = tt.dmatrix("x")
    vectors = [tt.dvector() for _ in range(4)]
    mode = theano.Mode(linker="py", optimizer="fast_run")
    function = theano.function([x, *vectors], [tt.dot(x, vector) for vector in vectors], mode=mode)
    nodes = function.maker.fgraph.toposort()
    assert sum(bool(getattr(node.op, "destroy_map", None)) for node in nodes) == len(vectors)
    assert "MergeOptimizer" not in undone
