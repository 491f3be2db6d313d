"""theano.link.c.exceptions of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.cmodule import (
    MissingGXX,
)
