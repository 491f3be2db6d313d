"""theano.scan.op of Theano-PyMC: alias module of Theano's own objects."""

from theano.scan_module.scan_op import (
    Scan,
    profile_printer,
)
