"""theano.link of Theano-PyMC: alias package of theano.gof's linkers."""

from theano.link import basic, c, utils, vm
