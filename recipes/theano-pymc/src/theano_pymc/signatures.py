"""Adapter for methods that take the graph as an argument in Theano-PyMC, but not in Theano."""

import inspect
from functools import wraps


def pass_fgraph(function):
    """Return ``function``, or a wrapper that passes ``node.fgraph`` as its parameter ``fgraph``.

    The wrapper adds the argument if the caller omits it. ``fgraph`` is the first parameter, or the first
    after ``self``. The node is the next parameter.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names = [parameter.name for parameter in parameters[:2]]
    if "fgraph" not in names:
        return function
    position = names.index("fgraph")
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [
        parameter
        for parameter in parameters
        if parameter.kind in positional and parameter.default is parameter.empty
    ]

    @wraps(function)
    def wrapper(*args, **kwargs):
        if len(args) + len(kwargs) < len(required):
            fgraph = getattr(args[position], "fgraph", None)
            args = (*args[:position], fgraph, *args[position:])
        return function(*args, **kwargs)

    return wrapper


def adapt_subclasses(base, methods):
    """Apply ``pass_fgraph`` to the ``methods`` of each future subclass of ``base``."""

    def __init_subclass__(cls, **kwargs):
        super(base, cls).__init_subclass__(**kwargs)
        for name in methods:
            method = vars(cls).get(name)
            if inspect.isfunction(method):
                setattr(cls, name, pass_fgraph(method))

    base.__init_subclass__ = classmethod(__init_subclass__)
