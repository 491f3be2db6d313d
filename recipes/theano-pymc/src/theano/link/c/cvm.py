"""theano.link.c.cvm of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.vm import (
    CVM,
)
