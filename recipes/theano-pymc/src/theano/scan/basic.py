"""theano.scan.basic of Theano-PyMC: aliases of Theano's objects."""

from theano.scan_module.scan import (
    scan,
)
