"""run/items-of-storages.patch computes once which storages Function.free empties.

Without the patch, each call of Function.free walks the storage map.
"""

import numpy as np
import theano
from theano import tensor


def compile_function():
    """Return a function that keeps its intermediate results after a call."""
    x = tensor.dvector()
    mode = theano.compile.get_default_mode().excluding("fusion")
    f = theano.function([x], tensor.exp(x) * 3.0 + tensor.tanh(x), mode=mode)
    f.fn.allow_gc = False
    return f


def test_free_empties_all_storages_except_constants():
    f = compile_function()
    for _ in range(3):
        np.testing.assert_allclose(f([0.0, 1.0])[0], 3)
        f.free()
        is_empty = {
            isinstance(variable, theano.Constant): cell[0] is None
            for variable, cell in f.fn.storage_map.items()
        }
        assert is_empty == {True: False, False: True}


def test_the_map_is_walked_once():
    f = compile_function()
    f.free()
    f.fn.storage_map = None
    f.free()
