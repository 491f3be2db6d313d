"""Find a wrong Op with DebugMode, which compares the results of each op's C and Python code.

Prints:
    FAST_RUN: [2. 4.]
    DebugMode: BadThunkOutput
"""

import numpy
import theano
import theano.tensor as T
from theano.compile.debugmode import BadThunkOutput, DebugMode


class Doubled(theano.Op):
    """Two times a vector; the wrong C code computes three times the vector."""

    __props__ = ()

    def make_node(self, x):
        """Make a node for a vector of float64."""
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        """Compute two times the vector in Python."""
        outputs[0][0] = inputs[0] * 2

    def c_code(self, node, name, inputs, outputs, sub):
        """Compute three times the vector in C."""
        (x,), (z,) = inputs, outputs
        return f"""
            Py_XDECREF({z});
            {z} = (PyArrayObject*) PyArray_NewCopy({x}, NPY_CORDER);
            for (npy_intp i = 0; i < PyArray_SIZE({z}); i++)
                ((double*) PyArray_DATA({z}))[i] *= 3;
        """

    def c_code_cache_version(self):
        """Return a version, so that Theano caches the compiled code."""
        return (1,)


x = T.dvector("x")
value = numpy.array([1.0, 2.0])
double_in_python = theano.function([x], Doubled()(x), mode=theano.Mode("py", "fast_run"))
print("FAST_RUN:", double_in_python(value))
try:
    theano.function([x], Doubled()(x), mode=DebugMode(check_py_code=True))(value)
except BadThunkOutput as error:
    print("DebugMode:", type(error).__name__)
