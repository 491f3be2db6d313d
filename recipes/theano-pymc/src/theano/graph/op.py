"""theano.graph.op of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.op import (
    COp as ExternalCOp,
    Op,
    Op as COp,
    OpenMPOp,
    get_debug_values as get_test_values,
    get_test_value,
    missing_test_message,
    ops_with_inner_function,
)
