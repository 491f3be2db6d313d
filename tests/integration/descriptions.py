"""Random graphs, described in JSON for ``graph_program.py``.

A description has the shapes of ``inputs``, the ``seed`` of their values, ``nodes`` and ``outputs``.
Variables are numbers: the inputs come first, then what each node computes. A node is the name of
an operation, the variables it is given, and its parameters. Those of a scan have the nodes of its
body, whose variables are numbered anew: slices of the sequences, taps of the states, and the other
variables that it is given come first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Shape = tuple[int, ...]
# The variables that an operation is given, its parameters, and the shapes of its results.
Step = tuple[list[int], dict[str, Any], list[Shape]]

SIZES = st.integers(2, 4)
UNARY = ("abs", "cos", "exp", "log", "neg", "sigmoid", "softplus", "sqrt", "tanh")
REDUCTIONS = ("largest", "mean", "sum")
BINARY = ("add", "sub", "mul", "div", "max", "switch")
# Start, stop and step.
SLICES = ([None, None, -1], [1, None, 1], [None, -1, 1], [None, None, 2])
# What an output of a step is computed from: steps before it, by the rows of the initial value.
STATE_TAPS = {2: ([-2], [-2, -1]), 3: ([-3, -1], [-3, -2, -1]), 4: ([-4, -1],)}
SEQUENCE_TAPS = ([0], [0], [-1, 0], [-2])
# The most nodes of a graph, and of the body of a scan; how deep scans stand in scans.
NODES, BODY, DEPTH = 7, 4, 2


class Unsuited(Exception):
    """No variable suits an operation."""


class Variables:
    """The shapes of the variables of a graph, and choices among them."""

    def __init__(self, draw: Callable[..., Any], shapes: list[Shape], depth: int) -> None:
        self.draw, self.shapes, self.depth = draw, list(shapes), depth

    def one(self, suits: Callable[[Shape], bool]) -> tuple[int, Shape]:
        """A variable with a shape that suits."""
        # The newest first: to these hypothesis reduces what fails.
        found = [place for place, shape in enumerate(self.shapes) if suits(shape)][::-1]
        if not found:
            raise Unsuited
        place = self.draw(st.sampled_from(found))
        return place, self.shapes[place]

    def onto(self, shape: Shape) -> int:
        """A variable that broadcasts to a shape."""
        return self.one(lambda other: other == shape[len(shape) - len(other) :])[0]

    def index(self, shape: Shape) -> tuple[list[Any], Shape]:
        """A basic index of an array, and the shape of what it takes."""
        index, taken = [], []
        for size in shape[: self.draw(st.integers(1, len(shape)))]:
            slices = [each for each in SLICES if len(range(size)[slice(*each)])]
            chosen = self.draw(st.sampled_from([*range(-size, size), *slices]))
            index.append(chosen)
            if isinstance(chosen, list):
                taken.append(len(range(size)[slice(*chosen)]))
        return index, (*taken, *shape[len(index) :])

    def rows(self, shape: Shape) -> list[int]:
        """Numbers of rows of an array."""
        rows = st.lists(st.integers(0, shape[0] - 1), min_size=2, max_size=4)
        return list(self.draw(rows))


def unary(graph: Variables) -> Step:
    x, shape = graph.one(lambda _: True)
    return [x], {}, [shape]


def binary(graph: Variables) -> Step:
    x, shape = graph.one(lambda _: True)
    return [x, graph.onto(shape)], {}, [shape]


def reduction(graph: Variables) -> Step:
    x, shape = graph.one(bool)
    axis = graph.draw(st.sampled_from([None, *range(len(shape))]))
    return [x], {"axis": axis}, [() if axis is None else shape[:axis] + shape[axis + 1 :]]


def dot(graph: Variables) -> Step:
    x, left = graph.one(lambda shape: len(shape) in (1, 2))
    y, right = graph.one(lambda shape: len(shape) in (1, 2) and shape[0] == left[-1])
    return [x, y], {}, [left[:-1] + right[1:]]


def batched_dot(graph: Variables) -> Step:
    x, (batch, rows, inner) = graph.one(lambda shape: len(shape) == 3)
    y, right = graph.one(lambda shape: len(shape) == 3 and shape[:2] == (batch, inner))
    return [x, y], {}, [(batch, rows, right[2])]


def outer(graph: Variables) -> Step:
    (x, (rows,)), (y, (columns,)) = (graph.one(lambda shape: len(shape) == 1) for _ in range(2))
    return [x, y], {}, [(rows, columns)]


def softmax(graph: Variables) -> Step:
    x, shape = graph.one(lambda shape: len(shape) == 2)
    return [x], {}, [shape]


def size(graph: Variables) -> Step:
    x, shape = graph.one(bool)
    return [x], {}, [shape]


def alloc(graph: Variables) -> Step:
    x, shape = graph.one(lambda shape: len(shape) < 2)
    wide = (graph.draw(SIZES), *shape)
    return [x], {"shape": wide}, [wide]


def permute(graph: Variables) -> Step:
    x, shape = graph.one(lambda shape: len(shape) > 1)
    axes = graph.draw(st.permutations(range(len(shape))))
    return [x], {"axes": axes}, [tuple(shape[axis] for axis in axes)]


def reshape(graph: Variables) -> Step:
    x, shape = graph.one(lambda shape: len(shape) > 1)
    whole = math.prod(shape)
    # None of one row: that would broadcast.
    rows = [size for size in range(2, whole) if whole % size == 0]
    new = graph.draw(st.sampled_from([(whole,), *((row, whole // row) for row in rows)]))
    return [x], {"shape": new}, [new]


def concatenate(graph: Variables) -> Step:
    x, left = graph.one(bool)
    axis = graph.draw(st.sampled_from(range(len(left))))

    def rest(shape: Shape) -> Shape:
        return shape[:axis] + shape[axis + 1 :]

    y, right = graph.one(lambda shape: len(shape) == len(left) and rest(shape) == rest(left))
    joined = (*left[:axis], left[axis] + right[axis], *left[axis + 1 :])
    return [x, y], {"axis": axis}, [joined]


def stack(graph: Variables) -> Step:
    x, shape = graph.one(lambda shape: len(shape) < 3)
    y, _ = graph.one(lambda other: other == shape)
    return [x, y], {}, [(2, *shape)]


def subtensor(graph: Variables) -> Step:
    x, shape = graph.one(bool)
    index, taken = graph.index(shape)
    return [x], {"index": index}, [taken]


def inc_subtensor(graph: Variables) -> Step:
    x, shape = graph.one(bool)
    index, taken = graph.index(shape)
    y = graph.onto(taken)
    return [x, y], {"index": index, "replace": graph.draw(st.booleans())}, [shape]


def take(graph: Variables) -> Step:
    x, shape = graph.one(bool)
    rows = graph.rows(shape)
    return [x], {"rows": rows}, [(len(rows), *shape[1:])]


def inc_rows(graph: Variables) -> Step:
    x, shape = graph.one(bool)
    rows = graph.rows(shape)
    return [x, graph.onto((len(rows), *shape[1:]))], {"rows": rows}, [shape]


def sequences(graph: Variables) -> tuple[list[list[Any]], list[Shape], list[int]]:
    """Sequences of a scan, the shapes of their slices, and how many steps each is enough for."""
    chosen, slices, lengths = [], [], []
    for _ in range(graph.draw(st.integers(0, 2))):
        place, shape = graph.one(lambda shape: bool(shape) and shape[0] > 2)
        taps = graph.draw(st.sampled_from(SEQUENCE_TAPS))
        chosen.append([place, taps])
        slices += [shape[1:]] * len(taps)
        lengths.append(shape[0] + min(taps))
    return chosen, slices, lengths


def states(graph: Variables, least: int) -> tuple[list[list[Any]], list[Shape], list[Shape]]:
    """States of a scan by their initial values, the shapes of their taps, and their own."""
    chosen, taken, shapes = [], [], []
    for _ in range(graph.draw(st.integers(least, 2))):
        place, shape = graph.one(lambda _: True)
        of_rows = STATE_TAPS.get(shape[0], ()) if shape else ()
        taps = graph.draw(st.sampled_from([[-1], *of_rows]))
        chosen.append([place, taps])
        shapes.append(shape if taps == [-1] else shape[1:])
        taken += [shapes[-1]] * len(taps)
    return chosen, taken, shapes


def scan(graph: Variables) -> Step:
    if not graph.depth:
        raise Unsuited
    draw = graph.draw
    slices_of, slices, lengths = sequences(graph)
    taps_of, taps, shapes = states(graph, least=0 if slices_of else 1)
    # Not the same one twice: Theano refuses that.
    others = dict(graph.one(lambda _: True) for _ in range(draw(st.integers(0, 2))))
    body = Variables(draw, [*slices, *taps, *others.values()], graph.depth - 1)
    nodes = add_nodes(body, BODY)
    following = [body.one(lambda other, shape=shape: other == shape)[0] for shape in shapes]
    mapped = [body.one(lambda _: True) for _ in range(draw(st.integers(0 if shapes else 1, 1)))]
    steps = min(lengths) if lengths else draw(SIZES)
    bound = draw(st.sampled_from([None, None, 0.0])) if shapes else None
    made = [*shapes, *(shape for _, shape in mapped)]
    # How many steps there are before a bound is known when they have been made.
    last = [bound is not None or draw(st.booleans()) for _ in made]
    parameters = {
        "sequences": slices_of,
        "states": taps_of,
        "others": list(others),
        "nodes": nodes,
        "next": following,
        "mapped": [place for place, _ in mapped],
        "steps": steps,
        "bound": bound,
        "backwards": draw(st.booleans()),
        "last": last,
    }
    pairs = zip(made, last, strict=True)
    return [], parameters, [shape if at_end else (steps, *shape) for shape, at_end in pairs]


# How often each is drawn, and the names that it is drawn for; its own, if it has none.
OPERATIONS: list[tuple[int, Callable[[Variables], Step], tuple[str, ...]]] = [
    (5, scan, ()),
    (3, unary, UNARY),
    (4, binary, BINARY),
    (2, reduction, REDUCTIONS),
    (2, dot, ()),
    *(
        (1, each, ())
        for each in (
            *(alloc, batched_dot, concatenate, inc_rows, inc_subtensor, outer, permute, reshape),
            *(size, softmax, stack, subtensor, take),
        )
    ),
]
DRAWN = [(each, names) for weight, each, names in OPERATIONS for _ in range(weight)]


def add_nodes(graph: Variables, most: int) -> list[list[Any]]:
    """Up to so many nodes; the variables that they make are added to the graph's."""
    nodes = []
    for operation, names in graph.draw(st.lists(st.sampled_from(DRAWN), min_size=2, max_size=most)):
        name = graph.draw(st.sampled_from(names or (operation.__name__,)))
        try:
            places, parameters, made = operation(graph)
        except Unsuited:
            continue
        nodes.append([name, places, parameters])
        graph.shapes += made
    return nodes


@st.composite
def graphs(draw: Callable[..., Any]) -> dict[str, Any]:
    """A description of a graph. Its outputs are the variables that no node is given."""
    shape = st.lists(SIZES, max_size=3).map(tuple)
    inputs = draw(st.lists(shape, min_size=1, max_size=3))
    graph = Variables(draw, inputs, DEPTH)
    nodes = add_nodes(graph, NODES)
    used = {place for node in nodes for place in given(node)}
    outputs = [place for place in range(len(graph.shapes)) if place not in used]
    seed = draw(st.integers(0, 99))
    return {"inputs": inputs, "seed": seed, "nodes": nodes, "outputs": outputs}


def given(node: list[Any]) -> list[int]:
    """The variables that a node is given."""
    name, places, parameters = node
    if name != "scan":
        return list(places)
    pairs = parameters["sequences"] + parameters["states"]
    return [place for place, _ in pairs] + parameters["others"]
