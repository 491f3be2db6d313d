"""theano.graph.toolbox of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.toolbox import (
    AlreadyThere,
    BadOptimization,
    Bookkeeper,
    Feature,
    GetCheckpoint,
    History,
    LambdExtract,
    NoOutputFromInplace,
    NodeFinder,
    PreserveNames,
    PreserveVariableAttributes,
    PrintListener,
    ReplaceValidate,
    ReplacementDidntRemovedError as ReplacementDidNotRemoveError,
    Validator,
)
from theano.gof.graph import (
    is_same_graph,
)
from theano.gof.opt import (
    is_same_graph_with_merge,
)
