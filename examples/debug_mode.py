"""DebugMode runs each op in each way there is, and finds one whose ways differ.

Prints:
    FAST_RUN says [2. 4.]
    DebugMode says BadThunkOutput
"""

import numpy
import theano
import theano.tensor as T
from theano.compile.debugmode import BadThunkOutput, DebugMode


class Doubled(theano.Op):
    """Twice a vector; in C, thrice."""

    __props__ = ()

    def make_node(self, x):
        """Take a vector of float64."""
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        """Compute it in Python."""
        outputs[0][0] = inputs[0] * 2

    def c_code(self, node, name, inputs, outputs, sub):
        """Compute something else in C."""
        (x,), (z,) = inputs, outputs
        return f"""
            Py_XDECREF({z});
            {z} = (PyArrayObject*) PyArray_NewCopy({x}, NPY_CORDER);
            for (npy_intp i = 0; i < PyArray_SIZE({z}); i++)
                ((double*) PyArray_DATA({z}))[i] *= 3;
        """

    def c_code_cache_version(self):
        """Keep what was compiled."""
        return (1,)


x = T.dvector("x")
value = numpy.array([1.0, 2.0])
python = theano.function([x], Doubled()(x), mode=theano.Mode("py", "fast_run"))
print("FAST_RUN says", python(value))
try:
    theano.function([x], Doubled()(x), mode=DebugMode(check_py_code=True))(value)
except BadThunkOutput as error:
    print("DebugMode says", type(error).__name__)
