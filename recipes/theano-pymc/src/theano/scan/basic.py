"""theano.scan.basic of Theano-PyMC: alias module of Theano's own objects."""

from theano.scan_module.scan import (
    scan,
)
