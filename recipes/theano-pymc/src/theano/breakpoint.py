"""theano.breakpoint of Theano-PyMC: aliases of Theano's objects."""

from theano.tests.breakpoint import (
    PdbBreakpoint,
)
