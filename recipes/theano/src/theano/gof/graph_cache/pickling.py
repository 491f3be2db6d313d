"""Pickling of graphs as flat lists of nodes, because pickle's own recursion limits the depth."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

import theano
from theano.gof import graph
from theano.gof.fg import FunctionGraph
from theano.gof.graph_cache.describing import get_constructor_arguments
from theano.gof.graph_cache.tags import Trace, get_traces, select_tags

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable
    from theano.gof.graph_cache.describing import Describer
    from theano.gof.op import Op
    from theano.gof.type import Type

    # A variable: its class, Type, name and tags. Pickler encodes the name and the tag "trace".
    VariableParts = tuple[type[Variable], Type, Any, dict[str, Any]]
    # A graph without its inputs: the constants with their data; for each node its Op, the numbers
    # of its inputs, its outputs and its tags; the numbers of the graph's outputs.
    # Pickler.flatten numbers the variables.
    FlatGraph = tuple[
        list[tuple[VariableParts, Any]],
        list[tuple[Op, list[int], list[VariableParts], dict[str, Any]]],
        list[int],
    ]


class Pickler(pickle.Pickler):
    """Pickle an optimized graph as a list of its nodes.

    The inner graph of an Op, such as a Scan, is pickled as a list too.

    The process that unpickles the graph has the same graph before optimization, but its variables
    can have other stack traces and names. So traces and names are not pickled. They are replaced by
    their positions in the Describer, which has visited the graph before optimization:

    - A trace is replaced by (i, j), its indices in `Describer.traces`.
    - A name is replaced by its number in `Describer.names`, and by the text that an optimizer has
      added to it. If the name x has the number 0, x[t] is replaced by (0, "[t]").

    Unpickler finds the traces and names at these positions in the Describer of its own process.
    """

    def __init__(self, file: IO[bytes], describer: Describer) -> None:
        super().__init__(file, protocol=4)
        self.names = describer.names
        self.trace_indices = {
            id(trace): (i, j)
            for i, traces in enumerate(describer.traces)
            for j, trace in enumerate(traces)
        }

    def reducer_override(self, value: Any) -> Any:
        """Return make_op and its arguments for an Op with an inner graph, otherwise NotImplemented.

        Raises:
            pickle.PicklingError: the object is a variable, node or graph, which `flatten` omitted.
        """
        if isinstance(value, (graph.Variable, graph.Apply, FunctionGraph)):
            raise pickle.PicklingError(f"{value} is not part of the graph")
        if (arguments := get_constructor_arguments(value)) is not None:
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
        """Encode a name that begins with a described name; return another name unchanged.

        For example, x, x0 and x[t] begin with the described name x, but xy does not.

        Raises:
            pickle.PicklingError: the name looks like an encoded name.
        """
        if type(name) is tuple:
            raise pickle.PicklingError(f"the name {name} is a tuple")
        if type(name) is str:
            for end in range(len(name), 0, -1):
                if name[:end] in self.names and not name[end : end + 1].isalpha():
                    return self.names[name[:end]], name[end:]
        return name

    def split_variable(self, variable: Variable) -> VariableParts:
        """Return the parts from which make_variable restores a variable.

        Raises:
            pickle.PicklingError: the variable is a shared variable.
        """
        if isinstance(variable, theano.compile.SharedVariable):
            raise pickle.PicklingError(f"{variable} is a shared variable")
        tag = select_tags(variable)
        traces = get_traces(variable)
        tag["trace"] = [
            self.trace_indices[id(trace)] for trace in traces if id(trace) in self.trace_indices
        ]
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

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or a function; for `make_op`, return the method of this object."""
        if (module, name) == (make_op.__module__, make_op.__name__):
            return self.make_op
        return super().find_class(module, name)

    def find_trace(self, i: int, j: int) -> Trace:
        """Return the trace with the given indices."""
        traces = self.traces[i]
        # The variable of this process can have fewer traces than the pickled variable.
        return traces[j] if j < len(traces) else []

    def make_variable(self, kind: Any, type_: Type, name: Any, tag: dict[str, Any]) -> Variable:
        """Restore a variable from the parts of `Pickler.split_variable`."""
        if type(name) is tuple:
            number, suffix = name
            name = self.names[number] + suffix
        # Do not call the constructor of a constant: it reads the data, which make_graph sets later.
        variable = kind.__new__(kind)
        graph.Variable.__init__(variable, type_, name=name)
        tag["trace"] = [self.find_trace(*indices) for indices in tag["trace"]]
        variable.tag.__dict__.update(tag)
        return variable

    def make_graph(
        self,
        inputs: Iterable[Variable],
        constants: Iterable[tuple[VariableParts, Any]],
        nodes: Iterable[tuple[Op, list[int], list[VariableParts], dict[str, Any]]],
        outputs: Iterable[int],
    ) -> list[Variable]:
        """Return the outputs of a graph, restored from its inputs and `Pickler.flatten`'s lists."""
        variables = list(inputs)
        for parts, data in constants:
            variables.append(self.make_variable(*parts))
            variables[-1].data = data
        for op, input_numbers, output_parts, tag in nodes:
            node = graph.Apply(
                op,
                [variables[i] for i in input_numbers],
                [self.make_variable(*parts) for parts in output_parts],
            )
            node.tag.__dict__.update(tag)
            variables.extend(node.outputs)
        return [variables[i] for i in outputs]

    def make_op(
        self,
        kind: type[Op],
        inputs: Sequence[VariableParts],
        flat: FlatGraph,
        other_arguments: Sequence[Any],
    ) -> Op:
        """Restore an Op from its inner graph and the other arguments of its constructor."""
        variables = [self.make_variable(*parts) for parts in inputs]
        return kind(variables, self.make_graph(variables, *flat), *other_arguments)


def make_op(*arguments: Any) -> Op:
    """Stand for the method `Unpickler.make_op`, because pickle stores functions by their names."""
    raise pickle.UnpicklingError("only Unpickler can restore an Op with an inner graph")
