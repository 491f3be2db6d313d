"""theano.scan.views of Theano-PyMC: aliases of Theano's objects."""

from theano.scan_module.scan_views import (
    foldl,
    foldr,
    map,
    reduce,
)
