"""theano.scan.checkpoints of Theano-PyMC: aliases of Theano's objects."""

from theano.scan_module.scan_checkpoints import (
    scan_checkpoints,
)
