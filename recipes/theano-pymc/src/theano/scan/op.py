"""theano.scan.op of Theano-PyMC: aliases of Theano's objects."""

from theano.scan_module.scan_op import (
    Scan,
    profile_printer,
)
