"""Reuse of formulas of integers for arguments with isomorphic graphs.

A graph has many slices of the same form, for example x[::-1] for each of several arrays x. A
function that simplifies such a slice examines only the graphs that compute its ends, not the
arrays. So its formula for the first slice is recorded, and evaluated with the variables of the next
slice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from theano.gof import Constant, Variable, graph
from theano.tensor import basic
from theano.tensor.elemwise import Elemwise
from theano.tensor.order.integers import SAME, find_length

if TYPE_CHECKING:
    from theano.gof import Op

# The largest number of variables in a description. The formulas of longer chains are not recorded,
# because each description would visit the entire chain.
MAX_VARIABLES = 200

# The largest number of formulas of a function.
MAX_FORMULAS = 1000

Maker = TypeVar("Maker", bound=Callable[..., Any])


class Fixed(NamedTuple):
    """A part of a formula that does not depend on variables: the data of a constant, or an object.

    Attributes:
        data: the data or the object.
        is_constant: whether the formula contains a constant with this data.
    """

    data: Any
    is_constant: bool

    def make(self) -> Any:
        """Return the object, or a constant that may become a part of any graph."""
        return basic.constant(self.data) if self.is_constant else self.data


# A part of a formula: the position of a variable, or a Fixed.
Part = int | Fixed


class Formula(NamedTuple):
    """A graph that computes results from numbered variables.

    Attributes:
        steps: the ops, with the parts to which they are applied. The outputs of an op get the next
            numbers.
        results: the parts that are the results.
        is_tuple: whether the results are returned as a tuple; otherwise, there is one result.
    """

    steps: list[tuple[Op, list[Part]]]
    results: list[Part]
    is_tuple: bool

    def evaluate(self, variables: Sequence[Variable]) -> Any:
        """Apply the ops to variables, and return the result or a tuple of results."""
        numbered = list(variables)

        def get(part: Part) -> Any:
            return part.make() if isinstance(part, Fixed) else numbered[part]

        for op, inputs in self.steps:
            # An op with a default output does not return its other outputs.
            (output, *_) = op(*map(get, inputs), return_list=True)
            numbered.extend(output.owner.outputs)
        results = tuple(map(get, self.results))
        return results if self.is_tuple else results[0]


def get_operands(x: Variable) -> list[Variable]:
    """Return the inputs of the node that computes a variable, if the proofs may examine them."""
    if x.owner and isinstance(x.owner.op, (Elemwise, *SAME)):
        inputs: list[Variable] = x.owner.inputs
        if all(getattr(input.type, "ndim", None) == 0 for input in inputs):
            return inputs
    return []


def describe(arguments: Sequence[Any]) -> tuple[Hashable, list[Variable]] | None:
    """Describe the graphs that compute arguments.

    If two descriptions are equal, the graphs are isomorphic: they have the same ops, constants,
    types and repeated variables, and the same variables are equal lengths.

    Args:
        arguments: variables, slices, and other objects.

    Returns:
        The description, and all variables of the graphs in the order of the description. None if
        there are more than MAX_VARIABLES.
    """
    numbers: dict[Variable, int] = {}
    lengths: dict[Any, int] = {}
    description: list[Hashable] = []
    todo = [*reversed(arguments)]
    while todo:
        x = todo.pop()
        if isinstance(x, slice):
            description.append(slice)
            todo.extend((x.step, x.stop, x.start))
        elif isinstance(x, np.ndarray):
            description.append((x.dtype, x.shape, x.tobytes()))
        elif not isinstance(x, Variable):
            description.append((type(x), x))
        elif x in numbers:
            description.append(numbers[x])
        else:
            numbers[x] = len(numbers)
            operands = get_operands(x)
            todo.extend(reversed(operands))
            meaning: Hashable = None
            if isinstance(x, Constant):
                meaning = x.signature()
            elif operands:
                meaning = (x.owner.op, x.owner.outputs.index(x), len(operands))
            elif x.owner and (length := find_length(x)):
                meaning = lengths.setdefault(length, len(lengths))
            description.append((x.type, meaning))
            if len(numbers) > MAX_VARIABLES:
                return None
    return tuple(description), list(numbers)


def record(result: Any, variables: Sequence[Variable]) -> Formula | None:
    """Return the formula that computes a result from variables.

    Args:
        result: a variable, another object, or a tuple of them.
        variables: the variables.

    Returns:
        The formula, or None if the result depends on other variables.
    """
    parts: dict[Variable, Part] = {x: number for number, x in enumerate(variables)}

    def find_part(x: Any) -> Part:
        if not isinstance(x, Variable):
            return Fixed(x, is_constant=False)
        if x not in parts and isinstance(x, Constant):
            parts[x] = Fixed(x.data, is_constant=True)
        return parts[x]

    steps: list[tuple[Op, list[Part]]] = []
    number = len(variables)
    results = result if isinstance(result, tuple) else (result,)
    new = [x for x in results if isinstance(x, Variable) and x not in parts]
    try:
        for node in graph.io_toposort(variables, new):
            steps.append((node.op, [find_part(input) for input in node.inputs]))
            for output in node.outputs:
                parts[output] = number
                number += 1
        return Formula(steps, [find_part(x) for x in results], isinstance(result, tuple))
    except KeyError:
        return None


def reuse_formulas(make: Maker) -> Maker:
    """Decorate a function of integers: record its formulas, and reuse them.

    The arguments of the function are variables, slices and other objects. It must not examine more
    of the graphs of its arguments than `describe` describes.
    """
    formulas: dict[Hashable, Formula] = {}

    @functools.wraps(make)
    def make_or_evaluate(*arguments: Any) -> Any:
        described = describe(arguments)
        if described is None:
            return make(*arguments)
        description, variables = described
        try:
            formula = formulas.get(description)
        except TypeError:
            # An argument is not hashable.
            return make(*arguments)
        if formula is not None:
            return formula.evaluate(variables)
        result = make(*arguments)
        formula = record(result, variables)
        if formula is not None:
            if len(formulas) >= MAX_FORMULAS:
                formulas.clear()
            formulas[description] = formula
        return result

    return cast("Maker", make_or_evaluate)
