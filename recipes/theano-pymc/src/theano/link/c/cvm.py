"""theano.link.c.cvm of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.vm import (
    CVM,
)
