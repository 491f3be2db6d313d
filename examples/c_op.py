"""Write an Op in C: Theano compiles each version of the C code once, into the cache.

Prints:
    [0. 1. 4. 9.]
    compiled again: False
"""

import numpy
import theano
import theano.tensor as T
from theano.gof.cmodule import get_module_cache


class Squared(theano.Op):
    """The square of each element of a vector of float64."""

    __props__ = ()

    def make_node(self, x):
        """Make a node for a vector of float64."""
        x = T.as_tensor_variable(x)
        if x.type != T.dvector:
            raise TypeError(f"Squared takes a dvector, not {x.type}")
        return theano.Apply(self, [x], [x.type()])

    def c_code(self, node, name, inputs, outputs, sub):
        """Return C code whose inputs and outputs are PyArrayObject*."""
        (x,), (z,) = inputs, outputs
        return f"""
            npy_intp length = PyArray_DIM({x}, 0);
            if (!{z} || PyArray_DIM({z}, 0) != length) {{
                Py_XDECREF({z});
                {z} = (PyArrayObject*) PyArray_EMPTY(1, &length, NPY_FLOAT64, 0);
                if (!{z}) {sub["fail"]}
            }}
            for (npy_intp i = 0; i < length; i++) {{
                double value = *(double*) PyArray_GETPTR1({x}, i);
                *(double*) PyArray_GETPTR1({z}, i) = value * value;
            }}
        """

    def c_code_cache_version(self):
        """Return the version of the C code: increase it if the code changes.

        Without a version, each process compiles the code.
        """
        return (1,)


x = T.dvector("x")
print(theano.function([x], Squared()(x))(numpy.arange(4.0)))
entries = len(get_module_cache(theano.config.compiledir).entry_from_key)
theano.function([x], Squared()(x))(numpy.arange(4.0))
print("compiled again:", len(get_module_cache(theano.config.compiledir).entry_from_key) > entries)
