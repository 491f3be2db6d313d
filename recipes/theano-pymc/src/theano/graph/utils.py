"""theano.graph.utils of Theano-PyMC: alias module of Theano's own objects."""

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

# What Theano raises where a variable has no test value.
TestValueError = AttributeError
