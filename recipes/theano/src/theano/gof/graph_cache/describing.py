"""Descriptions of graphs as text, equal in all processes, for cache keys."""

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
from theano.gof.graph_cache.tags import TAGS, TAGS_SET, Trace, get_traces
from theano.misc.frozendict import frozendict
from theano.misc.ordered_set import OrderedSet

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable
    from theano.gof.type import Type

# Graphs with a larger constant are not cached. In bytes.
MAX_CONSTANT = 2**24

# Classes of objects whose repr is their description, except long texts (MAX_TEXT).
PLAIN = {type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented)}
# Classes of numbers. A list or tuple of numbers is described by one call of repr.
NUMBERS = {bool, int, float}
# A longer text is described by its digest, which is computed once. Each DimShuffle, for example,
# contains its C code. In characters.
MAX_TEXT = 100
# Classes of objects whose description is the name from which they can be imported.
NAMED = (type, types.FunctionType, types.BuiltinFunctionType)
# The packages whose classes and functions are identified by their names, see is_trusted.
TRUSTED = (
    *("theano", "numpy", "scipy"),
    *("builtins", "collections", "copyreg", "operator", "functools"),
)


class NotDescribable(Exception):
    """Raised for an object whose behaviour could change without a change of its description."""


def digest(text: str) -> str:
    """Return the hash of a text as 40 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


class Describer:
    """Describe graphs, and collect the stack traces and names that descriptions omit.

    Attributes:
        digests: maps the id of a described object to the object's digest and to the object. The
            reference to the object keeps the id valid.
        traces: the stack traces of the described variables, in the order of description. Equal
            descriptions have their variables in the same order.
        names: maps a variable's name to its number, in the order of first occurrence.
        digests_of_types: maps the state of a TensorType to the digest of its description. Nearly
            every variable has a separate TensorType, but few of these types differ.
    """

    def __init__(self) -> None:
        self.digests: dict[int, tuple[str, Any]] = {}
        self.digests_of_types: dict[tuple[Any, ...], str] = {}
        self.traces: list[list[Trace]] = []
        self.names: dict[str, int] = {}

    def describe(self, value: Any) -> str:
        """Describe any object.

        Objects of built-in classes are described by their content; long texts and all other
        objects by a digest.

        Raises:
            NotDescribable: the object has no reliable description.
        """
        # The objects in `digests` are alive, so that no other object has their ids.
        described = self.digests.get(id(value))
        if described:
            return described[0]
        kind = type(value)
        if kind in PLAIN and (kind is not str or len(value) <= MAX_TEXT):
            return repr(value)
        if kind is tuple or kind is list:
            # Most items are numbers, for which repr is faster than this method.
            describe = repr if NUMBERS.issuperset(map(type, value)) else self.describe
            return f"{kind.__name__}({','.join(map(describe, value))})"
        if kind is dict:
            items = sorted(
                self.describe(key) + ":" + self.describe(item) for key, item in value.items()
            )
            return f"{{{','.join(items)}}}"
        if kind is set or kind is frozenset:
            return f"{kind.__name__}({','.join(sorted(map(self.describe, value)))})"
        if kind is str:
            text = "str " + digest(repr(value))
        elif kind is theano.tensor.TensorType:
            text = self.digest_type(value)
        else:
            text = self.digest_object(value)
        self.digests[id(value)] = text, value
        return text

    def digest_object(self, value: Any) -> str:
        """Return the digest of the description of an object; see describe_object."""
        return digest(self.describe_object(value))

    def digest_type(self, value: Type) -> str:
        """Return the digest of the description of a TensorType.

        Raises:
            NotDescribable: the state of the type has no reliable description.
        """
        state = tuple(vars(value).items())
        try:
            if state not in self.digests_of_types:
                self.digests_of_types[state] = self.digest_object(value)
            return self.digests_of_types[state]
        except TypeError:
            # A program gave the type an attribute that has no hash.
            return self.digest_object(value)

    def describe_object(self, value: Any) -> str:
        """Describe an object that is not of a built-in class.

        The description contains the state that pickle stores, except state that differs between
        processes. If an Op has an inner graph, the graph is described node by node.

        Raises:
            NotDescribable: the object has no reliable description.
        """
        kind = type(value)
        if isinstance(value, NAMED):
            return describe_name(value)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return describe_array(value)
        if isinstance(value, (graph.Variable, graph.Apply, FunctionGraph)):
            raise NotDescribable(value)
        if (arguments := get_constructor_arguments(value)) is not None:
            inputs, outputs, other_arguments = arguments
            parts = [describe_name(kind), self.describe_graph(inputs, outputs)]
            return ",".join([*parts, self.describe(other_arguments)])
        if isinstance(value, OrderedSet):
            return describe_name(kind) + self.describe(list(value))
        if isinstance(value, frozendict):
            return describe_name(kind) + self.describe(dict(value))
        return self.describe_reduced(value)

    def describe_reduced(self, value: Any) -> str:
        """Describe the state from which pickle would restore an object.

        Raises:
            NotDescribable: the object's class is not trusted, or pickle does not support it.
        """
        if not is_trusted(type(value)) or isinstance(value, theano.compile.ops.FromFunctionOp):
            raise NotDescribable(value)
        try:
            reduced = value.__reduce_ex__(2)
        except (AttributeError, KeyError, NotImplementedError, TypeError, PicklingError) as error:
            raise NotDescribable(value) from error
        if isinstance(reduced, str):
            return describe_name(type(value)) + reduced
        function, arguments, state, items, pairs = (tuple(reduced) + (None,) * 3)[:5]
        if isinstance(value, opt.Optimizer) and isinstance(state, dict):
            # Omit state that differs between equal optimizers: `name` may contain the id, and
            # `_optimizer_idx` counts the optimizers in the order of creation.
            state = {
                name: part for name, part in state.items() if name not in ("name", "_optimizer_idx")
            }
        described = [arguments, state, list(items or ()), list(pairs or ())]
        return ",".join([describe_name(function), *map(self.describe, described)])

    def describe_tags(self, value: Variable | Apply) -> str:
        """Describe a variable's or node's tags that are in tags.TAGS: the tags that Theano reads.

        Raises:
            NotDescribable: a tag has no reliable description.
        """
        tags = value.tag.__dict__
        if TAGS_SET.isdisjoint(tags):
            return "[]"
        return str([(tag, self.describe(tags[tag])) for tag in TAGS if tag in tags])

    def number_name(self, name: Any) -> str:
        """Return the number of a variable's name, as text.

        Optimization does not read names, so two programs with different names can share a cached
        graph. A program that loads the graph gives its own names to the graph's variables.
        Therefore variables that share a name in one program must share a name in the other program.
        """
        if type(name) is not str or not name:
            return repr(name)
        return str(self.names.setdefault(name, len(self.names)))

    def describe_variable(self, variable: Variable) -> str:
        """Describe a variable without the node that computes it; record its stack traces.

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
            NotDescribable: a part of the graph has no reliable description, an input occurs twice,
                or the outputs depend on a variable that is neither an input nor a constant.
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


def is_trusted(value: Any) -> bool:
    """Return whether the name of a class or function identifies its code.

    The names of Theano, Python, NumPy and SciPy identify their code, except in tests. The cache key
    contains Theano's code without tests, and the versions of Python, NumPy and SciPy
    (keys.describe_versions).
    """
    packages = (value.__module__ or "").split(".")
    return packages[0] in TRUSTED and "tests" not in packages


def get_constructor_arguments(op: Any) -> tuple[Any, Any, tuple[Any, ...]] | None:
    """Return the arguments that make an equal op, if the op has an inner graph.

    Returns:
        The inner inputs, the inner outputs and a tuple of the other arguments; or None if the op is
        neither a Composite nor a Scan.
    """
    if isinstance(op, theano.scalar.Composite):
        return op.inputs, op.outputs, ()
    if isinstance(op, theano.scan_module.scan_op.Scan):
        return op.inputs, op.outputs, (op.info,)
    return None


def describe_name(value: Any) -> str:
    """Return the name from which a class or function can be imported.

    Raises:
        NotDescribable: the name does not lead to this object, or is_trusted returns False.
    """
    imported: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        imported = getattr(imported, name, None)
    if imported is not value or not is_trusted(value):
        raise NotDescribable(value)
    return f"{value.__module__}.{value.__qualname__}"
