"""theano.link.c.exceptions of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.cmodule import (
    MissingGXX,
)
