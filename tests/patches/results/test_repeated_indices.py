"""results/repeated-indices.patch: an element that set_subtensor sets twice has the last value.

Without the patch, x[i] after set_subtensor(x[i], y) is y, even if i contains an index twice.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt


def test_a_repeated_symbolic_index_reads_the_last_value():
    x, y, i = tt.dvector(), tt.dvector(), tt.lvector()
    function = theano.function([x, y, i], tt.set_subtensor(x[i], y)[i])
    assert list(function(np.zeros(3), np.array([1.0, 2, 3]), np.array([1, 1, 0]))) == [2, 2, 3]


@pytest.mark.parametrize("indices", [[1, 1, 0], [2, -1, 0], [2, 1, 0], [-1, -2, -3]])
def test_a_repeated_constant_index_reads_the_last_value(indices):
    x, y = tt.dvector(), tt.dvector()
    function = theano.function([x, y], tt.set_subtensor(x[indices], y)[indices])
    expected = np.zeros(3)
    expected[indices] = [1, 2, 3]
    np.testing.assert_array_equal(function(np.zeros(3), np.array([1.0, 2, 3])), expected[indices])
