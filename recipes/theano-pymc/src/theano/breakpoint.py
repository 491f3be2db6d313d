"""theano.breakpoint of Theano-PyMC: alias module of Theano's own objects."""

from theano.tests.breakpoint import (
    PdbBreakpoint,
)
