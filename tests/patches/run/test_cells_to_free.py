"""run/items-of-storages.patch prepares the list of storages that Function.free empties.

Without the patch, each call walks the storage map.
"""

import numpy as np
import theano
from theano import tensor


def make():
    """Return a function that keeps its intermediate results."""
    x = tensor.dvector()
    mode = theano.compile.get_default_mode().excluding("fusion")
    f = theano.function([x], tensor.exp(x) * 3.0 + tensor.tanh(x), mode=mode)
    f.fn.allow_gc = False
    return f


def test_free_empties_all_storages_except_constants():
    f = make()
    for _ in range(3):
        np.testing.assert_allclose(f([0.0, 1.0])[0], 3)
        f.free()
        kinds = {
            isinstance(variable, theano.Constant): cell[0] is None
            for variable, cell in f.fn.storage_map.items()
        }
        assert kinds == {True: False, False: True}


def test_the_map_is_walked_once():
    f = make()
    f.free()
    f.fn.storage_map = None
    f.free()
