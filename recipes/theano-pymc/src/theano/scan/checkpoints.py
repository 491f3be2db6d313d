"""theano.scan.checkpoints of Theano-PyMC: alias module of Theano's own objects."""

from theano.scan_module.scan_checkpoints import (
    scan_checkpoints,
)
