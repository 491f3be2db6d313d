"""Add attributes of Theano-PyMC 1.1.2 to Theano's modules and classes."""

import importlib
import sys
from collections.abc import Collection
from functools import wraps
from pathlib import Path

import numpy as np
import theano
from theano import configparser, gof, scalar, tensor
from theano.compile import ops
from theano.gof.op import get_test_value
from theano.gof.utils import scratchpad
from theano.sandbox import rng_mrg
from theano.tensor import extra_ops
from theano.tensor.var import _tensor_py_operators

from theano_pymc.signatures import adapt_subclasses, pass_fgraph

# Theano-PyMC imports these modules with Theano, and programs use them as attributes without an import.
MODULES = (
    "theano.breakpoint",
    "theano.compile.compiledir",
    "theano.compile.compilelock",
    "theano.compile.function.pfunc",
    "theano.compile.function.types",
    "theano.graph",
    "theano.link",
    "theano.scan",
    "theano.tensor.random",
    "theano.utils",
)


def add_names():
    """Import the alias modules, and set the attributes."""
    # theano.compile.function is a module in Theano and a package in Theano-PyMC. Make it both.
    function = sys.modules["theano.compile.function"]
    function.__path__ = [str(Path(__file__).parent / "function")]
    # The import of a submodule overwrites the attribute of its name in the package. Save the functions of
    # these names, and restore them after the imports.
    functions = [(theano, "scan", theano.scan), (function, "pfunc", function.pfunc)]
    for name in MODULES:
        importlib.import_module(name)
    for module, name, value in functions:
        setattr(module, name, value)

    add_to_config()
    add_to_graphs()
    rng_mrg.MRG_RandomStream = rng_mrg.MRG_RandomStreams
    for new, old in {
        "ScalarMaximum": "Maximum",
        "ScalarMinimum": "Minimum",
        "scalar_maximum": "maximum",
        "scalar_minimum": "minimum",
    }.items():
        for module in scalar, scalar.basic:
            setattr(module, new, getattr(scalar.basic, old))
    for module in tensor, extra_ops:
        module.squeeze = squeeze
        module.broadcast_to = broadcast_to
    _tensor_py_operators.squeeze = squeeze


def add_to_config():
    """Add ``change_flags``, and aliases of flags with ``__`` instead of the dot."""
    root = type(theano.config)
    root.change_flags = change_flags
    for parameter in configparser._config_var_list:
        if "." in parameter.fullname:
            # The parameter is a descriptor and stores the value, so both names set the same value.
            setattr(root, parameter.fullname.replace(".", "__"), parameter)


class change_flags(theano.change_flags):
    """Theano's change_flags for names with ``__`` or a dot. PyMC3 pickles instances with its models."""

    def __init__(self, args=(), **kwargs):
        flags = dict(args, **kwargs)
        super().__init__({name.replace("__", "."): flags[name] for name in flags})

    def __reduce__(self):
        return type(self), (self.new_vals,)


def add_to_graphs():
    """Add methods to variables and graphs, and support Theano-PyMC's signatures in user classes."""
    gof.Variable.get_test_value = get_test_value
    variable_init = gof.Variable.__init__

    @wraps(variable_init)
    def init_variable(self, type, *args, **kwargs):
        variable_init(self, type, *args, **kwargs)
        self.tag = ValidatingScratchpad(type)

    gof.Variable.__init__ = init_variable
    gof.FunctionGraph.get_clients = lambda self, var: var.clients
    gof.FunctionGraph.clients = property(
        lambda self: {variable: variable.clients for variable in self.variables}
    )
    adapt_subclasses(gof.PureOp, ("infer_shape", "do_constant_folding"))
    adapt_subclasses(gof.LocalOptimizer, ("transform",))
    from_function = ops.FromFunctionOp.__init__

    @wraps(from_function)
    def __init__(self, fn, itypes, otypes, infer_shape):
        from_function(self, fn, itypes, otypes, infer_shape and pass_fgraph(infer_shape))

    ops.FromFunctionOp.__init__ = __init__


class ValidatingScratchpad(scratchpad):
    """The attribute ``tag`` of a variable: it converts an assigned test value to the variable's type.

    PyMC3 reads test values back and expects arrays.
    """

    # A slot is not in the dictionary, which contains only the tag's attributes.
    __slots__ = ("_type",)

    def __init__(self, type):
        self._type = type

    def __setattr__(self, name, value):
        if name == "test_value":
            # Theano casts only Python numbers to floatX. Theano-PyMC also casts NumPy numbers.
            number = float(value) if isinstance(value, np.floating) else value
            value = self._type.filter(number)
        super().__setattr__(name, value)

    def __copy__(self):
        copied = super().__copy__()
        copied._type = self._type
        return copied

    def __reduce__(self):
        # Pickle a plain scratchpad, so that a program can load the pickle without this package.
        return scratchpad, (), self.__dict__


def squeeze(x, axis=None):
    """Return ``x`` without its broadcastable dimensions, or only without those listed in ``axis``.

    As in Theano-PyMC, ignore dimensions in ``axis`` that are not broadcastable, and negative numbers.
    """
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, Collection) else [axis]
    return x.dimshuffle([i for i in range(x.ndim) if not x.broadcastable[i] or i not in axes])


def broadcast_to(x, shape):
    """Return ``x`` broadcast to ``shape``: a tuple of numbers or scalar variables, or a vector."""
    return tensor.alloc(x, *shape)
