"""Process-independent descriptions of graphs, as text for cache keys."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterable, Sequence
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
import theano
from theano.gof import graph, opt
from theano.gof.fg import FunctionGraph
from theano.gof.graph_cache.tags import TAGS, Trace, get_traces
from theano.misc.frozendict import frozendict
from theano.misc.ordered_set import OrderedSet

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable

# The largest size of a constant, in bytes.
MAX_CONSTANT = 2**24

PLAIN = {type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented)}
NAMED = (type, types.FunctionType, types.BuiltinFunctionType)
TRUSTED = (
    *("theano", "numpy", "scipy"),
    *("builtins", "collections", "copyreg", "operator", "functools"),
)


class NotDescribable(Exception):
    """Raised for an object that could change without a change of its description."""


def digest(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


class Describer:
    """Describe graphs, and collect the stack traces and names that descriptions omit.

    Attributes:
        traces: the stack traces of the described variables, in the order of description. Equal
            descriptions have their variables in the same order.
        names: maps a variable's name to a number, in the order of first occurrence.
    """

    def __init__(self) -> None:
        # Maps an id to the object's digest and to the object, so that no other object gets this id.
        self.digests: dict[int, tuple[str, Any]] = {}
        self.traces: list[list[Trace]] = []
        self.names: dict[str, int] = {}

    def describe(self, thing: Any) -> str:
        """Describe any object.

        Raises:
            NotDescribable: the object has no reliable description.
        """
        kind = type(thing)
        if kind in PLAIN:
            return repr(thing)
        if kind is tuple or kind is list:
            return f"{kind.__name__}({','.join(map(self.describe, thing))})"
        if kind is dict:
            items = sorted(
                self.describe(key) + ":" + self.describe(value) for key, value in thing.items()
            )
            return f"{{{','.join(items)}}}"
        if kind is set or kind is frozenset:
            return f"{kind.__name__}({','.join(sorted(map(self.describe, thing)))})"
        if id(thing) not in self.digests:
            self.digests[id(thing)] = digest(self.describe_object(thing)), thing
        return self.digests[id(thing)][0]

    def describe_object(self, thing: Any) -> str:
        """Describe an object that is not of a built-in class.

        The description follows pickle, except for objects with an inner graph and for state that
        differs between processes.

        Raises:
            NotDescribable: the object has no reliable description.
        """
        kind = type(thing)
        if isinstance(thing, NAMED):
            return describe_name(thing)
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            return describe_array(thing)
        if isinstance(thing, (graph.Variable, graph.Apply, FunctionGraph)):
            raise NotDescribable(thing)
        if (arguments := constructor_arguments(thing)) is not None:
            inputs, outputs, others = arguments
            parts = [describe_name(kind), self.describe_graph(inputs, outputs)]
            return ",".join([*parts, self.describe(others)])
        if isinstance(thing, OrderedSet):
            return describe_name(kind) + self.describe(list(thing))
        if isinstance(thing, frozendict):
            return describe_name(kind) + self.describe(dict(thing))
        return self.describe_reduced(thing)

    def describe_reduced(self, thing: Any) -> str:
        """Describe the state from which pickle would restore an object.

        Raises:
            NotDescribable: the object's class is not trusted, or pickle does not support it.
        """
        if not is_trusted(type(thing)) or isinstance(thing, theano.compile.ops.FromFunctionOp):
            raise NotDescribable(thing)
        try:
            reduced = thing.__reduce_ex__(2)
        except (AttributeError, KeyError, NotImplementedError, TypeError, PicklingError) as error:
            raise NotDescribable(thing) from error
        if isinstance(reduced, str):
            return describe_name(type(thing)) + reduced
        function, arguments, state, items, pairs = (tuple(reduced) + (None,) * 3)[:5]
        if isinstance(thing, opt.Optimizer) and isinstance(state, dict):
            # `name` differs each time; `_optimizer_idx` depends on the order of creation.
            state = {
                key: value for key, value in state.items() if key not in ("name", "_optimizer_idx")
            }
        described = [arguments, state, list(items or ()), list(pairs or ())]
        return ",".join([describe_name(function), *map(self.describe, described)])

    def describe_tags(self, thing: Variable | Apply) -> str:
        """Describe the tags that Theano reads.

        Raises:
            NotDescribable: a tag has no reliable description.
        """
        tags = thing.tag.__dict__
        return str([(tag, self.describe(tags[tag])) for tag in TAGS if tag in tags])

    def number_name(self, name: Any) -> str:
        """Return the number of a variable's name, as text.

        Optimization does not read names, but variables that share a name must share it afterwards.
        """
        if type(name) is not str or not name:
            return repr(name)
        return str(self.names.setdefault(name, len(self.names)))

    def describe_variable(self, variable: Variable) -> str:
        """Describe a variable, without the node that computes it.

        Raises:
            NotDescribable: the variable has no reliable description.
        """
        self.traces.append(get_traces(variable))
        data = self.describe(variable.data) if isinstance(variable, graph.Constant) else ""
        kind, type_ = self.describe(type(variable)), self.describe(variable.type)
        name = self.number_name(variable.name)
        return f"{kind} {type_} {name} {data} {self.describe_tags(variable)}"

    def describe_graph(self, inputs: Sequence[Variable], outputs: Iterable[Variable]) -> str:
        """Return the hash of a graph's description.

        Raises:
            NotDescribable: a part has no reliable description, or the outputs depend on a variable
                that is neither an input nor a constant.
        """
        if len(set(inputs)) < len(inputs):
            raise NotDescribable(inputs)
        lines = [self.describe_variable(variable) for variable in inputs]
        numbers = {variable: i for i, variable in enumerate(inputs)}

        def number(variable: Variable) -> int:
            if variable not in numbers:
                if not isinstance(variable, graph.Constant):
                    raise NotDescribable(variable)
                numbers[variable] = len(numbers)
                lines.append(self.describe_variable(variable))
            return numbers[variable]

        for node in graph.io_toposort(inputs, outputs):
            input_numbers = [number(variable) for variable in node.inputs]
            lines.append(f"{self.describe(node.op)} {input_numbers} {self.describe_tags(node)}")
            for variable in node.outputs:
                numbers[variable] = len(numbers)
                lines.append(self.describe_variable(variable))
        lines.append(str([number(variable) for variable in outputs]))
        return digest("\n".join(lines))


def describe_array(array: np.ndarray) -> str:
    """Describe an array whose dtype has no objects.

    Raises:
        NotDescribable: the array is larger than MAX_CONSTANT.
    """
    if array.nbytes > MAX_CONSTANT:
        raise NotDescribable(f"an array of {array.nbytes} bytes")
    content = hashlib.blake2b(array.tobytes()).hexdigest()
    return f"array({describe_name(type(array))},{array.dtype.descr},{array.shape},{content})"


def is_trusted(thing: Any) -> bool:
    """Return whether the name of a class or function always identifies it.

    It does outside tests, in Theano and in the packages of `keys.describe_versions`.
    """
    packages = (thing.__module__ or "").split(".")
    return packages[0] in TRUSTED and "tests" not in packages


def constructor_arguments(op: Any) -> tuple[Any, Any, tuple[Any, ...]] | None:
    """Return the constructor's arguments for an equal op, or None if the op has no inner graph.

    Returns:
        The inner inputs, the inner outputs and a tuple of the other arguments.
    """
    if isinstance(op, theano.scalar.Composite):
        return op.inputs, op.outputs, ()
    if isinstance(op, theano.scan_module.scan_op.Scan):
        return op.inputs, op.outputs, (op.info,)
    return None


def describe_name(thing: Any) -> str:
    """Return the name from which a class or function can be imported.

    Raises:
        NotDescribable: the name leads to another object, or is not trusted.
    """
    imported: Any = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        imported = getattr(imported, name, None)
    if imported is not thing or not is_trusted(thing):
        raise NotDescribable(thing)
    return f"{thing.__module__}.{thing.__qualname__}"
