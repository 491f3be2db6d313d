"""Graphs, taken apart for pickle and put together again."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import theano
from theano.gof import graph
from theano.gof.fg import FunctionGraph
from theano.gof.graph_cache.tags import Trace, get_traces, take_tag

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable
    from theano.gof.graph_cache.describing import Describer
    from theano.gof.op import Op
    from theano.gof.type import Type

    # What a variable is remade from: its class, its Type, its name and its tags.
    Taken = tuple[type[Variable], Type, Any, dict[str, Any]]
    # A graph without its inputs: constants and their data; of each node the Op, the numbers of its
    # inputs, its outputs and its tags; the numbers of the graph's outputs.
    Flat = tuple[
        list[tuple[Taken, Any]],
        list[tuple[Op, list[int], list[Taken], dict[str, Any]]],
        list[int],
    ]


@dataclass(frozen=True)
class Name:
    """The name of a variable, as one of `Describer.names` and what optimization added to it."""

    number: int
    rest: str


class Pickler(pickle.Pickler):
    """Pickles graphs as lists of nodes: graphs of any depth, also those inside of Ops.

    Where a variable was created becomes a place in `Describer.traces`, its name one of
    `Describer.names`.
    """

    def __init__(self, file: IO[bytes], described: Describer) -> None:
        super().__init__(file, protocol=4)
        self.names = described.names
        self.places = {
            id(trace): (i, j)
            for i, each in enumerate(described.traces)
            for j, trace in enumerate(each)
        }

    def persistent_id(self, thing: Any) -> tuple[int, int | str] | None:
        """Return the place of a trace, the number and the rest of a Name, None for all else."""
        kind = type(thing)
        if kind is Name:
            return thing.number, thing.rest
        return self.places.get(id(thing)) if kind is list else None

    def reducer_override(self, thing: Any) -> Any:
        """Return how an Op with a graph inside is remade, NotImplemented for all else.

        Raises:
            pickle.PicklingError: it is a part of a graph that is not pickled.
        """
        if isinstance(thing, (graph.Variable, graph.Apply, FunctionGraph)):
            raise pickle.PicklingError(f"{thing} is not part of the graph")
        if hasattr(type(thing), "constructor_arguments"):
            inputs, outputs, others = thing.constructor_arguments()
            nodes = graph.io_toposort(inputs, outputs)
            return make_op, (
                type(thing),
                [self.take(variable) for variable in inputs],
                self.flatten(inputs, outputs, nodes),
                others,
            )
        return NotImplemented

    def take_name(self, name: Any) -> Any:
        """Return the Name of what is one of the described names, or begins with it: x, x0, x[t]."""
        if type(name) is str:
            for end in range(len(name), 0, -1):
                if name[:end] in self.names and not name[end : end + 1].isalpha():
                    return Name(self.names[name[:end]], name[end:])
        return name

    def take(self, variable: Variable) -> Taken:
        """Return what a variable is remade from.

        Raises:
            pickle.PicklingError: it is a shared variable, whose value is no part of a graph.
        """
        if isinstance(variable, theano.compile.SharedVariable):
            raise pickle.PicklingError(f"{variable} has a value")
        tag = take_tag(variable)
        tag["trace"] = [trace for trace in get_traces(variable) if id(trace) in self.places]
        return type(variable), variable.type, self.take_name(variable.name), tag

    def flatten(
        self, inputs: Iterable[Variable], outputs: Iterable[Variable], nodes: Iterable[Apply]
    ) -> Flat:
        """Return a graph without its inputs.

        Inputs, constants and outputs of nodes are numbered in this order.

        Raises:
            KeyError: a variable is computed by none of the nodes.
            pickle.PicklingError: a variable is a shared one.
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
            [(self.take(constant), constant.data) for constant in constants],
            [
                (
                    node.op,
                    [number[variable] for variable in node.inputs],
                    [self.take(variable) for variable in node.outputs],
                    take_tag(node),
                )
                for node in nodes
            ],
            [number[variable] for variable in outputs],
        )


class Unpickler(pickle.Unpickler):
    """Reads what `Pickler` wrote, with the traces and names of a graph of the same description."""

    def __init__(self, file: IO[bytes], described: Describer) -> None:
        super().__init__(file)
        self.traces = described.traces
        self.names = list(described.names)

    def persistent_load(self, place: tuple[int, int | str]) -> Trace | str:
        """Return the trace, or the name, that `Pickler.persistent_id` stands for."""
        first, second = place
        if isinstance(second, str):
            return self.names[first] + second
        traces = self.traces[first]
        # Variables of the same description may have been copied from fewer.
        return traces[second] if second < len(traces) else []


def make_variable(kind: Any, type_: Type, name: str | None, tag: dict[str, Any]) -> Variable:
    """Return the variable that `Pickler.take` took apart."""
    # Not by the constructor of its class: that of a constant looks at the data.
    variable = kind.__new__(kind)
    graph.Variable.__init__(variable, type_, name=name)
    variable.tag.__dict__.update(tag)
    return variable


def make_graph(
    inputs: Iterable[Variable],
    constants: Iterable[tuple[Taken, Any]],
    nodes: Iterable[tuple[Op, list[int], list[Taken], dict[str, Any]]],
    outputs: Iterable[int],
) -> list[Variable]:
    """Return the outputs of a graph that `Pickler.flatten` took apart."""
    variables = list(inputs)
    for taken, data in constants:
        variables.append(make_variable(*taken))
        variables[-1].data = data
    for op, given, made, tag in nodes:
        node = graph.Apply(
            op, [variables[i] for i in given], [make_variable(*taken) for taken in made]
        )
        node.tag.__dict__.update(tag)
        variables.extend(node.outputs)
    return [variables[i] for i in outputs]


def make_op(kind: type[Op], inputs: Sequence[Taken], flat: Flat, others: Sequence[Any]) -> Op:
    """Return an Op with a graph inside, from that graph and its constructor's other arguments."""
    remade = [make_variable(*taken) for taken in inputs]
    return kind(remade, make_graph(remade, *flat), *others)
