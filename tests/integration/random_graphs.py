"""Draw descriptions of random graphs for ``graph_program.py``; JSON can contain them.

A description is a dictionary: ``inputs`` are the shapes of the inputs, ``seed`` is the seed of
their values, and ``nodes`` and ``outputs`` define the graph. Variables are numbered: first the
inputs, then the results of each node. A node is a list of an operation's name, the numbers of its
operands, and its parameters.

The parameters of a scan contain the nodes of its body. The variables of a body have their own
numbers: first the slices of the sequences, then the taps of the states, then the other operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Shape = tuple[int, ...]
# The numbers of an operation's operands, its parameters, and the shapes of its results.
Step = tuple[list[int], dict[str, Any], list[Shape]]

SIZES = st.integers(2, 4)
UNARY = ("abs", "cos", "exp", "log", "neg", "sigmoid", "softplus", "sqrt", "tanh")
REDUCTIONS = ("largest", "mean", "sum")
BINARY = ("add", "sub", "mul", "div", "max", "switch")
# Each slice is [start, stop, step].
SLICES = ([None, None, -1], [1, None, 1], [None, -1, 1], [None, None, 2])
# The possible taps of a state, for each number of rows of its initial value.
STATE_TAPS = {2: ([-2], [-2, -1]), 3: ([-3, -1], [-3, -2, -1]), 4: ([-4, -1],)}
SEQUENCE_TAPS = ([0], [0], [-1, 0], [-2])
# The maximum number of nodes of a graph, of nodes of a scan's body, and of levels of nested scans.
NODES, BODY, DEPTH = 7, 4, 2


class NoOperand(Exception):
    """No variable of the graph can be an operand of the operation."""


class Variables:
    """The shapes of a graph's variables, and random choices among them."""

    def __init__(self, draw: Callable[..., Any], shapes: list[Shape], depth: int) -> None:
        self.draw, self.shapes, self.depth = draw, list(shapes), depth

    def choose(self, suits: Callable[[Shape], bool]) -> tuple[int, Shape]:
        """Choose a variable for whose shape ``suits`` returns true; return its number and shape.

        Raises:
            NoOperand: the graph has no such variable.
        """
        # List the newest variable first. Hypothesis reduces a failing example to first choices, so
        # reduced graphs use new variables.
        positions = [position for position, shape in enumerate(self.shapes) if suits(shape)][::-1]
        if not positions:
            raise NoOperand
        position = self.draw(st.sampled_from(positions))
        return position, self.shapes[position]

    def choose_broadcastable(self, shape: Shape) -> int:
        """Choose a variable that broadcasts to ``shape``; return its number."""
        return self.choose(lambda other: other == shape[len(shape) - len(other) :])[0]

    def choose_index(self, shape: Shape) -> tuple[list[Any], Shape]:
        """Choose integers and slices that index an array; return them and the result's shape."""
        index, part_shape = [], []
        for size in shape[: self.draw(st.integers(1, len(shape)))]:
            slices = [bounds for bounds in SLICES if len(range(size)[slice(*bounds)])]
            entry = self.draw(st.sampled_from([*range(-size, size), *slices]))
            index.append(entry)
            if isinstance(entry, list):
                part_shape.append(len(range(size)[slice(*entry)]))
        return index, (*part_shape, *shape[len(index) :])

    def choose_rows(self, shape: Shape) -> list[int]:
        """Choose the positions of two to four rows of an array; positions may repeat."""
        rows = st.lists(st.integers(0, shape[0] - 1), min_size=2, max_size=4)
        return list(self.draw(rows))


# Each function below draws one operation: the function chooses the operands from the graph's
# variables, and returns a Step. If no variable is suitable, the function raises NoOperand.


def unary(graph: Variables) -> Step:
    x, shape = graph.choose(lambda _: True)
    return [x], {}, [shape]


def binary(graph: Variables) -> Step:
    x, shape = graph.choose(lambda _: True)
    return [x, graph.choose_broadcastable(shape)], {}, [shape]


def reduction(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    axis = graph.draw(st.sampled_from([None, *range(len(shape))]))
    return [x], {"axis": axis}, [() if axis is None else shape[:axis] + shape[axis + 1 :]]


def dot(graph: Variables) -> Step:
    x, first = graph.choose(lambda shape: len(shape) in (1, 2))
    y, second = graph.choose(lambda shape: len(shape) in (1, 2) and shape[0] == first[-1])
    return [x, y], {}, [first[:-1] + second[1:]]


def batched_dot(graph: Variables) -> Step:
    x, (batch, rows, inner) = graph.choose(lambda shape: len(shape) == 3)
    y, second = graph.choose(lambda shape: len(shape) == 3 and shape[:2] == (batch, inner))
    return [x, y], {}, [(batch, rows, second[2])]


def outer(graph: Variables) -> Step:
    (x, (rows,)), (y, (columns,)) = (graph.choose(lambda shape: len(shape) == 1) for _ in range(2))
    return [x, y], {}, [(rows, columns)]


def softmax(graph: Variables) -> Step:
    x, shape = graph.choose(lambda shape: len(shape) == 2)
    return [x], {}, [shape]


def size(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    return [x], {}, [shape]


def alloc(graph: Variables) -> Step:
    x, shape = graph.choose(lambda shape: len(shape) < 2)
    wide = (graph.draw(SIZES), *shape)
    return [x], {"shape": wide}, [wide]


def permute(graph: Variables) -> Step:
    x, shape = graph.choose(lambda shape: len(shape) > 1)
    axes = graph.draw(st.permutations(range(len(shape))))
    return [x], {"axes": axes}, [tuple(shape[axis] for axis in axes)]


def reshape(graph: Variables) -> Step:
    x, shape = graph.choose(lambda shape: len(shape) > 1)
    whole = math.prod(shape)
    # Omit shapes with one row: Theano would make the first dimension of the result broadcastable.
    rows = [size for size in range(2, whole) if whole % size == 0]
    new = graph.draw(st.sampled_from([(whole,), *((row, whole // row) for row in rows)]))
    return [x], {"shape": new}, [new]


def concatenate(graph: Variables) -> Step:
    x, first = graph.choose(bool)
    axis = graph.draw(st.sampled_from(range(len(first))))

    def drop_axis(shape: Shape) -> Shape:
        return shape[:axis] + shape[axis + 1 :]

    y, second = graph.choose(
        lambda shape: len(shape) == len(first) and drop_axis(shape) == drop_axis(first)
    )
    joined = (*first[:axis], first[axis] + second[axis], *first[axis + 1 :])
    return [x, y], {"axis": axis}, [joined]


def stack(graph: Variables) -> Step:
    x, shape = graph.choose(lambda shape: len(shape) < 3)
    y, _ = graph.choose(lambda other: other == shape)
    return [x, y], {}, [(2, *shape)]


def subtensor(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    index, part_shape = graph.choose_index(shape)
    return [x], {"index": index}, [part_shape]


def inc_subtensor(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    index, part_shape = graph.choose_index(shape)
    y = graph.choose_broadcastable(part_shape)
    return [x, y], {"index": index, "replace": graph.draw(st.booleans())}, [shape]


def take(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    rows = graph.choose_rows(shape)
    return [x], {"rows": rows}, [(len(rows), *shape[1:])]


def inc_rows(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    rows = graph.choose_rows(shape)
    return [x, graph.choose_broadcastable((len(rows), *shape[1:]))], {"rows": rows}, [shape]


def choose_sequences(graph: Variables) -> tuple[list[list[Any]], list[Shape], list[int]]:
    """Choose the sequences of a scan.

    Return [number, taps] of each sequence, the shape of each slice, and the number of steps that
    each sequence permits.
    """
    sequences, slices, lengths = [], [], []
    for _ in range(graph.draw(st.integers(0, 2))):
        position, shape = graph.choose(lambda shape: bool(shape) and shape[0] > 2)
        taps = graph.draw(st.sampled_from(SEQUENCE_TAPS))
        sequences.append([position, taps])
        slices += [shape[1:]] * len(taps)
        lengths.append(shape[0] + min(taps))
    return sequences, slices, lengths


def choose_states(
    graph: Variables, minimum: int
) -> tuple[list[list[Any]], list[Shape], list[Shape]]:
    """Choose the initial values of a scan's states: at least ``minimum`` states, at most two.

    Return [number, taps] of each state, the shape of each tap, and the shape of each state.
    """
    states, tap_shapes, shapes = [], [], []
    for _ in range(graph.draw(st.integers(minimum, 2))):
        position, shape = graph.choose(lambda _: True)
        row_taps = STATE_TAPS.get(shape[0], ()) if shape else ()
        taps = graph.draw(st.sampled_from([[-1], *row_taps]))
        states.append([position, taps])
        shapes.append(shape if taps == [-1] else shape[1:])
        tap_shapes += [shapes[-1]] * len(taps)
    return states, tap_shapes, shapes


def scan(graph: Variables) -> Step:
    if not graph.depth:
        raise NoOperand
    draw = graph.draw
    sequences, slice_shapes, lengths = choose_sequences(graph)
    states, tap_shapes, shapes = choose_states(graph, minimum=0 if sequences else 1)
    # The dictionary drops duplicates: Theano refuses a variable that is passed twice.
    others = dict(graph.choose(lambda _: True) for _ in range(draw(st.integers(0, 2))))
    body = Variables(draw, [*slice_shapes, *tap_shapes, *others.values()], graph.depth - 1)
    nodes = add_nodes(body, BODY)
    following = [body.choose(lambda other, shape=shape: other == shape)[0] for shape in shapes]
    mapped = [body.choose(lambda _: True) for _ in range(draw(st.integers(0 if shapes else 1, 1)))]
    steps = min(lengths) if lengths else draw(SIZES)
    bound = draw(st.sampled_from([None, None, 0.0])) if shapes else None
    result_shapes = [*shapes, *(shape for _, shape in mapped)]
    # With a bound, select the last step of every result: the length of a history is the number of
    # steps, which is known only after the scan has run.
    last = [bound is not None or draw(st.booleans()) for _ in result_shapes]
    parameters = {
        "sequences": sequences,
        "states": states,
        "others": list(others),
        "nodes": nodes,
        "next": following,
        "mapped": [position for position, _ in mapped],
        "steps": steps,
        "bound": bound,
        "backwards": draw(st.booleans()),
        "last": last,
    }
    pairs = zip(result_shapes, last, strict=True)
    return [], parameters, [shape if at_end else (steps, *shape) for shape, at_end in pairs]


# The weight of a function in the random choice, the function, and the names of the operations that
# it draws. Without names, the operation has the function's name.
OPERATIONS: list[tuple[int, Callable[[Variables], Step], tuple[str, ...]]] = [
    (5, scan, ()),
    (3, unary, UNARY),
    (4, binary, BINARY),
    (2, reduction, REDUCTIONS),
    (2, dot, ()),
    *(
        (1, function, ())
        for function in (
            *(alloc, batched_dot, concatenate, inc_rows, inc_subtensor, outer, permute, reshape),
            *(size, softmax, stack, subtensor, take),
        )
    ),
]
WEIGHTED = [(function, names) for weight, function, names in OPERATIONS for _ in range(weight)]


def add_nodes(graph: Variables, maximum: int) -> list[list[Any]]:
    """Draw at most ``maximum`` nodes, add their results to ``graph``, and return the nodes."""
    nodes = []
    choices = st.lists(st.sampled_from(WEIGHTED), min_size=2, max_size=maximum)
    for function, names in graph.draw(choices):
        name = graph.draw(st.sampled_from(names or (function.__name__,)))
        try:
            operands, parameters, shapes = function(graph)
        except NoOperand:
            continue
        nodes.append([name, operands, parameters])
        graph.shapes += shapes
    return nodes


@st.composite
def graphs(draw: Callable[..., Any]) -> dict[str, Any]:
    """Draw a description of a graph whose outputs are the variables that no node reads."""
    shape = st.lists(SIZES, max_size=3).map(tuple)
    inputs = draw(st.lists(shape, min_size=1, max_size=3))
    graph = Variables(draw, inputs, DEPTH)
    nodes = add_nodes(graph, NODES)
    operands = {position for node in nodes for position in list_positions(node)}
    outputs = [position for position in range(len(graph.shapes)) if position not in operands]
    seed = draw(st.integers(0, 99))
    return {"inputs": inputs, "seed": seed, "nodes": nodes, "outputs": outputs}


def list_positions(node: list[Any]) -> list[int]:
    """List the numbers of a node's operands; a scan has them in its parameters."""
    name, operands, parameters = node
    if name != "scan":
        return list(operands)
    pairs = parameters["sequences"] + parameters["states"]
    return [position for position, _ in pairs] + parameters["others"]
