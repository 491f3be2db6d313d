"""theano.graph.utils of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.utils import (
    MetaObject as MetaType,
    MethodNotDefined,
    add_tag_trace,
    get_variable_trace_string,
    object2 as MetaObject,
    scratchpad as Scratchpad,
    simple_extract_stack,
    toposort,
)

# Theano raises this exception if a variable has no test value.
TestValueError = AttributeError
