"""Pickling of graphs as flat lists of nodes, because pickle's own recursion limits the depth."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import theano
from theano.gof import graph
from theano.gof.fg import FunctionGraph
from theano.gof.graph_cache.describing import constructor_arguments
from theano.gof.graph_cache.tags import Trace, get_traces, select_tags

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable
    from theano.gof.graph_cache.describing import Describer
    from theano.gof.op import Op
    from theano.gof.type import Type

    # A variable: its class, Type, name and tags.
    VariableParts = tuple[type[Variable], Type, Any, dict[str, Any]]
    # A graph without its inputs: the constants with their data; for each node its Op, the numbers
    # of its inputs, its outputs and its tags; the numbers of the graph's outputs.
    # Pickler.flatten numbers the variables.
    FlatGraph = tuple[
        list[tuple[VariableParts, Any]],
        list[tuple[Op, list[int], list[VariableParts], dict[str, Any]]],
        list[int],
    ]


@dataclass(frozen=True)
class Name:
    """The name of a variable: a number in `Describer.names` and a suffix.

    If x has the number 0, the name x[t] has the number 0 and the suffix "[t]".
    """

    number: int
    suffix: str


class Pickler(pickle.Pickler):
    """Pickle graphs of any depth as lists of nodes, including the inner graphs of Ops.

    A stack trace is stored as two indices into `Describer.traces`, and a name as a number in
    `Describer.names`. When another process unpickles the graph, its own traces and names replace
    them.
    """

    def __init__(self, file: IO[bytes], describer: Describer) -> None:
        super().__init__(file, protocol=4)
        self.names = describer.names
        self.trace_indices = {
            id(trace): (i, j)
            for i, traces in enumerate(describer.traces)
            for j, trace in enumerate(traces)
        }

    def persistent_id(self, value: Any) -> tuple[int, int | str] | None:
        """Return the indices of a stack trace, or the number and suffix of a Name.

        For other objects, return None: pickle stores them as usual.
        """
        kind = type(value)
        if kind is Name:
            return value.number, value.suffix
        return self.trace_indices.get(id(value)) if kind is list else None

    def reducer_override(self, value: Any) -> Any:
        """Return make_op and its arguments for an Op with an inner graph, otherwise NotImplemented.

        Raises:
            pickle.PicklingError: the object is a variable, node or graph, which `flatten` omitted.
        """
        if isinstance(value, (graph.Variable, graph.Apply, FunctionGraph)):
            raise pickle.PicklingError(f"{value} is not part of the graph")
        if (arguments := constructor_arguments(value)) is not None:
            inputs, outputs, other_arguments = arguments
            nodes = graph.io_toposort(inputs, outputs)
            return make_op, (
                type(value),
                [self.split_variable(variable) for variable in inputs],
                self.flatten(inputs, outputs, nodes),
                other_arguments,
            )
        return NotImplemented

    def encode_name(self, name: Any) -> Any:
        """Return a Name if a name begins with a described name; otherwise return it unchanged.

        For example, x, x0 and x[t] begin with the described name x, but xy does not.
        """
        if type(name) is str:
            for end in range(len(name), 0, -1):
                if name[:end] in self.names and not name[end : end + 1].isalpha():
                    return Name(self.names[name[:end]], name[end:])
        return name

    def split_variable(self, variable: Variable) -> VariableParts:
        """Return the parts from which make_variable restores a variable.

        Raises:
            pickle.PicklingError: the variable is a shared variable.
        """
        if isinstance(variable, theano.compile.SharedVariable):
            raise pickle.PicklingError(f"{variable} has a value")
        tag = select_tags(variable)
        traces = get_traces(variable)
        tag["trace"] = [trace for trace in traces if id(trace) in self.trace_indices]
        return type(variable), variable.type, self.encode_name(variable.name), tag

    def flatten(
        self, inputs: Iterable[Variable], outputs: Iterable[Variable], nodes: Iterable[Apply]
    ) -> FlatGraph:
        """Return a graph as a FlatGraph.

        Variables are numbered: first the inputs, then the constants, then the outputs of nodes in
        the order of the nodes.

        Args:
            inputs: the inputs of the graph.
            outputs: the outputs of the graph.
            nodes: the nodes of the graph in topological order.

        Raises:
            KeyError: no node computes one of the variables.
            pickle.PicklingError: a variable is a shared variable.
        """
        nodes = list(nodes)
        used = [*outputs, *(variable for node in nodes for variable in node.inputs)]
        constants = list(
            dict.fromkeys(variable for variable in used if isinstance(variable, graph.Constant))
        )
        variables = [
            *inputs,
            *constants,
            *(variable for node in nodes for variable in node.outputs),
        ]
        number = {variable: i for i, variable in enumerate(variables)}
        return (
            [(self.split_variable(constant), constant.data) for constant in constants],
            [
                (
                    node.op,
                    [number[variable] for variable in node.inputs],
                    [self.split_variable(variable) for variable in node.outputs],
                    select_tags(node),
                )
                for node in nodes
            ],
            [number[variable] for variable in outputs],
        )


class Unpickler(pickle.Unpickler):
    """Unpickle a `Pickler`'s graph; take traces and names from a Describer of this process.

    The Describer must have described a graph whose description equals the pickled graph's.
    """

    def __init__(self, file: IO[bytes], describer: Describer) -> None:
        super().__init__(file)
        self.traces = describer.traces
        self.names = list(describer.names)

    def persistent_load(self, pid: tuple[int, int | str]) -> Trace | str:
        """Return the trace or the name for an identifier of `Pickler.persistent_id`."""
        first, second = pid
        if isinstance(second, str):
            return self.names[first] + second
        traces = self.traces[first]
        # The variable of this process can have fewer traces than the pickled variable.
        return traces[second] if second < len(traces) else []


def make_variable(kind: Any, type_: Type, name: str | None, tag: dict[str, Any]) -> Variable:
    """Restore a variable from the parts of `Pickler.split_variable`."""
    # Do not call the constructor of a constant: it reads the data, which make_graph sets later.
    variable = kind.__new__(kind)
    graph.Variable.__init__(variable, type_, name=name)
    variable.tag.__dict__.update(tag)
    return variable


def make_graph(
    inputs: Iterable[Variable],
    constants: Iterable[tuple[VariableParts, Any]],
    nodes: Iterable[tuple[Op, list[int], list[VariableParts], dict[str, Any]]],
    outputs: Iterable[int],
) -> list[Variable]:
    """Restore a graph from its inputs and the lists of `Pickler.flatten`; return its outputs."""
    variables = list(inputs)
    for parts, data in constants:
        variables.append(make_variable(*parts))
        variables[-1].data = data
    for op, input_numbers, output_parts, tag in nodes:
        node = graph.Apply(
            op,
            [variables[i] for i in input_numbers],
            [make_variable(*parts) for parts in output_parts],
        )
        node.tag.__dict__.update(tag)
        variables.extend(node.outputs)
    return [variables[i] for i in outputs]


def make_op(
    kind: type[Op], inputs: Sequence[VariableParts], flat: FlatGraph, other_arguments: Sequence[Any]
) -> Op:
    """Restore an Op from its inner graph and the other arguments of its constructor."""
    variables = [make_variable(*parts) for parts in inputs]
    return kind(variables, make_graph(variables, *flat), *other_arguments)
