"""theano.graph.toolbox of Theano-PyMC: alias module of Theano's own objects."""

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
