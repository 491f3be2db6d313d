"""theano.graph.unify of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.utils import (
    ABORT,
    FAILURE,
    Keyword,
    RETRY,
    simple_types,
    type_guard,
)
from theano.gof.unify import (
    ANY_TYPE,
    BoundVariable,
    FALL_THROUGH,
    FVar,
    FreeVariable,
    NV,
    NotVariable,
    OrV,
    OrVariable,
    Unification,
    V,
    Var,
    Variable,
    VariableInList,
    comm_guard,
    unify,
    unify_build,
    unify_merge,
    unify_walk,
    var_lookup,
)
