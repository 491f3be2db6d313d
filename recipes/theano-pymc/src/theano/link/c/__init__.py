"""theano.link.c of Theano-PyMC: alias package of theano.gof's C compiler and linker."""

from theano.link.c import basic, cmodule, cvm, exceptions, interface
