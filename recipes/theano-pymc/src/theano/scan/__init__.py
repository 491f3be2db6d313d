"""theano.scan of Theano-PyMC: alias package of theano.scan_module."""

from theano.scan import basic, checkpoints, op, opt, utils, views
from theano.scan_module import clone, foldl, foldr, map, reduce, scan, scan_checkpoints, until
