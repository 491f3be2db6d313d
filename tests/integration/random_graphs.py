"""Draw random graphs, described in JSON for ``graph_program.py``.

A description has the shapes of ``inputs``, the ``seed`` of their values, ``nodes`` and ``outputs``.
Variables are numbers: first the inputs, then the results of each node. A node is the name of an
operation, its operands and its parameters. The parameters of a scan contain the nodes of its body.
The body has its own numbers: first slices of the sequences, then taps of the states, then other
operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Shape = tuple[int, ...]
# The operands of an operation, its parameters, and the shapes of its results.
Step = tuple[list[int], dict[str, Any], list[Shape]]

SIZES = st.integers(2, 4)
UNARY = ("abs", "cos", "exp", "log", "neg", "sigmoid", "softplus", "sqrt", "tanh")
REDUCTIONS = ("largest", "mean", "sum")
BINARY = ("add", "sub", "mul", "div", "max", "switch")
# Start, stop and step.
SLICES = ([None, None, -1], [1, None, 1], [None, -1, 1], [None, None, 2])
# The taps of a state, by the number of rows of its initial value.
STATE_TAPS = {2: ([-2], [-2, -1]), 3: ([-3, -1], [-3, -2, -1]), 4: ([-4, -1],)}
SEQUENCE_TAPS = ([0], [0], [-1, 0], [-2])
# The maximum numbers of nodes of a graph and of a scan's body, and the depth of nested scans.
NODES, BODY, DEPTH = 7, 4, 2


class Unsuited(Exception):
    """No variable is suitable for an operation."""


class Variables:
    """The shapes of a graph's variables, and random choices among them."""

    def __init__(self, draw: Callable[..., Any], shapes: list[Shape], depth: int) -> None:
        self.draw, self.shapes, self.depth = draw, list(shapes), depth

    def choose(self, suits: Callable[[Shape], bool]) -> tuple[int, Shape]:
        """Choose a variable whose shape ``suits``; return its position and its shape."""
        # List the newest first, because hypothesis reduces failing examples to the first choices.
        positions = [position for position, shape in enumerate(self.shapes) if suits(shape)][::-1]
        if not positions:
            raise Unsuited
        position = self.draw(st.sampled_from(positions))
        return position, self.shapes[position]

    def choose_broadcastable(self, shape: Shape) -> int:
        """Choose a variable that broadcasts to a shape."""
        return self.choose(lambda other: other == shape[len(shape) - len(other) :])[0]

    def index(self, shape: Shape) -> tuple[list[Any], Shape]:
        """Choose a basic index of an array; return it and the shape of the result."""
        index, shape_part = [], []
        for size in shape[: self.draw(st.integers(1, len(shape)))]:
            slices = [bounds for bounds in SLICES if len(range(size)[slice(*bounds)])]
            chosen = self.draw(st.sampled_from([*range(-size, size), *slices]))
            index.append(chosen)
            if isinstance(chosen, list):
                shape_part.append(len(range(size)[slice(*chosen)]))
        return index, (*shape_part, *shape[len(index) :])

    def rows(self, shape: Shape) -> list[int]:
        """Choose numbers of rows of an array."""
        rows = st.lists(st.integers(0, shape[0] - 1), min_size=2, max_size=4)
        return list(self.draw(rows))


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
    # Use more than one row, because one row would broadcast.
    rows = [size for size in range(2, whole) if whole % size == 0]
    new = graph.draw(st.sampled_from([(whole,), *((row, whole // row) for row in rows)]))
    return [x], {"shape": new}, [new]


def concatenate(graph: Variables) -> Step:
    x, first = graph.choose(bool)
    axis = graph.draw(st.sampled_from(range(len(first))))

    def drop_first(shape: Shape) -> Shape:
        return shape[:axis] + shape[axis + 1 :]

    y, second = graph.choose(
        lambda shape: len(shape) == len(first) and drop_first(shape) == drop_first(first)
    )
    joined = (*first[:axis], first[axis] + second[axis], *first[axis + 1 :])
    return [x, y], {"axis": axis}, [joined]


def stack(graph: Variables) -> Step:
    x, shape = graph.choose(lambda shape: len(shape) < 3)
    y, _ = graph.choose(lambda other: other == shape)
    return [x, y], {}, [(2, *shape)]


def subtensor(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    index, part_shape = graph.index(shape)
    return [x], {"index": index}, [part_shape]


def inc_subtensor(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    index, part_shape = graph.index(shape)
    y = graph.choose_broadcastable(part_shape)
    return [x, y], {"index": index, "replace": graph.draw(st.booleans())}, [shape]


def take(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    rows = graph.rows(shape)
    return [x], {"rows": rows}, [(len(rows), *shape[1:])]


def inc_rows(graph: Variables) -> Step:
    x, shape = graph.choose(bool)
    rows = graph.rows(shape)
    return [x, graph.choose_broadcastable((len(rows), *shape[1:]))], {"rows": rows}, [shape]


def sequences(graph: Variables) -> tuple[list[list[Any]], list[Shape], list[int]]:
    """Choose sequences of a scan; return them, the shapes of slices, and the number of steps."""
    chosen, slices, lengths = [], [], []
    for _ in range(graph.draw(st.integers(0, 2))):
        position, shape = graph.choose(lambda shape: bool(shape) and shape[0] > 2)
        taps = graph.draw(st.sampled_from(SEQUENCE_TAPS))
        chosen.append([position, taps])
        slices += [shape[1:]] * len(taps)
        lengths.append(shape[0] + min(taps))
    return chosen, slices, lengths


def states(graph: Variables, least: int) -> tuple[list[list[Any]], list[Shape], list[Shape]]:
    """Choose initial values of states; return them, the shapes of their taps, and their shapes."""
    chosen, part_shapes, shapes = [], [], []
    for _ in range(graph.draw(st.integers(least, 2))):
        position, shape = graph.choose(lambda _: True)
        of_rows = STATE_TAPS.get(shape[0], ()) if shape else ()
        taps = graph.draw(st.sampled_from([[-1], *of_rows]))
        chosen.append([position, taps])
        shapes.append(shape if taps == [-1] else shape[1:])
        part_shapes += [shapes[-1]] * len(taps)
    return chosen, part_shapes, shapes


def scan(graph: Variables) -> Step:
    if not graph.depth:
        raise Unsuited
    draw = graph.draw
    slices_of, slices, lengths = sequences(graph)
    taps_of, taps, shapes = states(graph, least=0 if slices_of else 1)
    # Theano refuses to use a variable twice.
    others = dict(graph.choose(lambda _: True) for _ in range(draw(st.integers(0, 2))))
    body = Variables(draw, [*slices, *taps, *others.values()], graph.depth - 1)
    nodes = add_nodes(body, BODY)
    following = [body.choose(lambda other, shape=shape: other == shape)[0] for shape in shapes]
    mapped = [body.choose(lambda _: True) for _ in range(draw(st.integers(0 if shapes else 1, 1)))]
    steps = min(lengths) if lengths else draw(SIZES)
    bound = draw(st.sampled_from([None, None, 0.0])) if shapes else None
    made = [*shapes, *(shape for _, shape in mapped)]
    # With a bound, the number of steps is known only after the scan has run.
    last = [bound is not None or draw(st.booleans()) for _ in made]
    parameters = {
        "sequences": slices_of,
        "states": taps_of,
        "others": list(others),
        "nodes": nodes,
        "next": following,
        "mapped": [position for position, _ in mapped],
        "steps": steps,
        "bound": bound,
        "backwards": draw(st.booleans()),
        "last": last,
    }
    pairs = zip(made, last, strict=True)
    return [], parameters, [shape if at_end else (steps, *shape) for shape, at_end in pairs]


# The weight of a function, the function, and the names of its operations. Without names, the
# operation has the function's name.
OPERATIONS: list[tuple[int, Callable[[Variables], Step], tuple[str, ...]]] = [
    (5, scan, ()),
    (3, unary, UNARY),
    (4, binary, BINARY),
    (2, reduction, REDUCTIONS),
    (2, dot, ()),
    *(
        (1, name, ())
        for name in (
            *(alloc, batched_dot, concatenate, inc_rows, inc_subtensor, outer, permute, reshape),
            *(size, softmax, stack, subtensor, take),
        )
    ),
]
DRAWN = [(name, names) for weight, name, names in OPERATIONS for _ in range(weight)]


def add_nodes(graph: Variables, most: int) -> list[list[Any]]:
    """Add at most ``most`` nodes, and their variables, to a graph."""
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
    """Draw a description of a graph whose outputs are the variables that no node reads."""
    shape = st.lists(SIZES, max_size=3).map(tuple)
    inputs = draw(st.lists(shape, min_size=1, max_size=3))
    graph = Variables(draw, inputs, DEPTH)
    nodes = add_nodes(graph, NODES)
    used = {position for node in nodes for position in list_positions(node)}
    outputs = [position for position in range(len(graph.shapes)) if position not in used]
    seed = draw(st.integers(0, 99))
    return {"inputs": inputs, "seed": seed, "nodes": nodes, "outputs": outputs}


def list_positions(node: list[Any]) -> list[int]:
    """List the numbers of a node's operands."""
    name, places, parameters = node
    if name != "scan":
        return list(places)
    pairs = parameters["sequences"] + parameters["states"]
    return [position for position, _ in pairs] + parameters["others"]
