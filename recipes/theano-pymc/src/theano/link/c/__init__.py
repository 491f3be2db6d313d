"""theano.link.c of Theano-PyMC: alias package of what compiles and links C in theano.gof."""

from theano.link.c import basic, cmodule, cvm, exceptions, interface
