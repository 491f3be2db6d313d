"""theano.scan.views of Theano-PyMC: alias module of Theano's own objects."""

from theano.scan_module.scan_views import (
    foldl,
    foldr,
    map,
    reduce,
)
