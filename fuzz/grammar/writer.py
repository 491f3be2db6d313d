"""Write a random program: choose variables, add statements, and make the calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fuzz.grammar import types
from fuzz.program import Input, Program, Value, find_names, remove_unused

# The symbols of lengths in Variable.dims. For each call, each symbol gets a length from LENGTHS,
# with the frequencies FREQUENCIES.
SIZES = ("a", "b", "c", "d")
LENGTHS = (0, 1, 2, 3, 4, 5, 7)
FREQUENCIES = (4, 4, 6, 8, 4, 3, 1)

Option = TypeVar("Option")


@dataclass(frozen=True)
class Variable:
    """A variable of the program.

    Args:
        dims: a string for each dimension: "1" if the dimension is broadcastable, another number if
            its length is fixed, an element of SIZES, or any other string for a computed length.
            Equal strings mean equal lengths.
        exact: whether the elements are exact: operations without rounding compute them from inputs
            of few bits.
        depth: the number of operations between the inputs and the variable.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    exact: bool = False
    depth: int = 0

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.dims)

    @property
    def discrete(self) -> bool:
        """Return whether the elements are integers or booleans."""
        return self.dtype in types.DISCRETE


@dataclass
class Writer:
    """An incomplete random program, with methods that choose and add its parts.

    Args:
        random: the generator of all random choices.
        extreme: whether elements of arrays may be nan, infinite or large, so that results overflow.
        variables: all variables that statements may read.
        inputs: the variables that are inputs.
        shared: the shared variables and their initial values.
        statements: pairs of a target and an expression.
        updates: see fuzz.program.Program.
        bounds: maps an input to the bounds of its integers.
        outputs: the names of the outputs; if empty, ``make_program`` chooses outputs.
        rounding: whether floats may differ by rounding; if not, the tolerance is 0.
    """

    random: random.Random
    extreme: bool = False
    variables: list[Variable] = field(default_factory=list)
    inputs: list[Variable] = field(default_factory=list)
    shared: list[tuple[Variable, Value]] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)
    updates: list[tuple[str, str]] = field(default_factory=list)
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    rounding: bool = True

    def decide(self, percent: int) -> bool:
        """Return True with a probability of ``percent`` / 100."""
        return self.random.randrange(100) < percent

    def choose(self, options: Sequence[Option]) -> Option:
        """Choose one of several options."""
        return options[self.random.randrange(len(options))]

    def choose_dtype(self, among: Sequence[str] = types.ALL) -> str:
        """Choose the type of an input by the weights types.WEIGHTS."""
        names = [name for name in types.WEIGHTS if name in among]
        return self.random.choices(names, [types.WEIGHTS[name] for name in names])[0]

    def choose_dims(self, ndim: int, broadcastable: int = 12) -> tuple[str, ...]:
        """Choose the dimensions of an input.

        ``broadcastable`` is the probability of a broadcastable dimension, in percent.
        """
        return tuple(
            "1" if self.decide(broadcastable) else self.choose(SIZES[:3]) for _ in range(ndim)
        )

    def add_input(
        self, dtype: str, dims: tuple[str, ...], bounds: tuple[int, int] | None = None
    ) -> Variable:
        """Add an input; if ``bounds`` is given, the elements are integers within the bounds.

        The length of an input cannot be a computed length: SIZES[0] replaces a computed length.
        """
        dims = tuple(dim if dim in SIZES or dim.isdigit() else SIZES[0] for dim in dims)
        variable = Variable(f"x{len(self.inputs)}", dtype, dims, dtype != "float16")
        self.inputs.append(variable)
        self.variables.append(variable)
        if bounds:
            self.bounds[variable.name] = bounds
        return variable

    def choose_variable(
        self,
        among: Sequence[str] = types.ALL,
        ndim: int | Sequence[int] = (0, 1, 1, 2, 2, 3),
        where: Callable[[Variable], bool] = lambda _: True,
        new: int = 25,
    ) -> Variable:
        """Choose a variable, or add an input.

        Args:
            among: the possible types.
            ndim: the possible numbers of dimensions.
            where: a condition on the variable; a new input may violate it.
            new: the probability of a new input in percent, if a suitable variable exists.
        """
        allowed = (ndim,) if isinstance(ndim, int) else tuple(ndim)
        candidates = [
            variable
            for variable in self.variables
            if variable.dtype in among and variable.ndim in allowed and where(variable)
        ]
        if candidates and not self.decide(new):
            # Prefer later variables, so that operations form chains.
            return candidates[max(self.random.randrange(len(candidates)) for _ in range(2))]
        return self.add_input(self.choose_dtype(among), self.choose_dims(self.choose(allowed)))

    def choose_broadcastable(
        self, variable: Variable, among: Sequence[str] = types.ALL
    ) -> Variable:
        """Choose a variable that broadcasts with another variable, or add such an input."""

        def broadcasts(other: Variable) -> bool:
            pairs = zip(reversed(other.dims), reversed(variable.dims))
            return all(one == two or "1" in (one, two) for one, two in pairs)

        candidates = [
            candidate
            for candidate in self.variables
            if candidate.dtype in among and broadcasts(candidate)
        ]
        if variable in candidates and not self.decide(12):
            # Operations on a variable and itself are less interesting, so write few of them.
            candidates.remove(variable)
        if candidates and not self.decide(25):
            return candidates[max(self.random.randrange(len(candidates)) for _ in range(2))]
        possible = [dim in SIZES or dim.isdigit() for dim in variable.dims]
        if not all(possible):
            # An input cannot have a computed length: use the dimensions after the last computed
            # length.
            first = len(possible) - possible[::-1].index(False)
            return self.add_input(self.choose_dtype(among), variable.dims[first:])
        dims = tuple("1" if self.decide(20) else dim for dim in variable.dims)
        return self.add_input(self.choose_dtype(among), dims[self.choose((0, 0, 0, len(dims))) :])

    def add(
        self, text: str, dtype: str, dims: Sequence[str], *operands: Variable, exact: bool = False
    ) -> Variable:
        """Add a statement that computes a variable; return the variable.

        Integers are exact. If ``exact`` is set, floats are exact if the operands are exact and the
        depth is less than 5: after more operations, numbers need too many bits.
        """
        depth = 1 + max((operand.depth for operand in operands), default=0)
        all_exact = all(operand.exact for operand in operands)
        exact = dtype in types.DISCRETE or (exact and depth < 5 and all_exact)
        variable = Variable(f"v{len(self.statements)}", dtype, tuple(dims), exact, depth)
        self.statements.append((variable.name, text))
        self.variables.append(variable)
        return variable

    def add_statement(self, text: str) -> str:
        """Add a statement whose value is not a Variable, such as a list; return its target."""
        name = f"v{len(self.statements)}"
        self.statements.append((name, text))
        return name

    def add_shared(self, dtype: str, shape: tuple[int, ...]) -> Variable:
        """Add a shared variable with a random initial value."""
        dims = tuple(map(str, shape))
        variable = Variable(f"s{len(self.shared)}", dtype, dims, dtype != "float16")
        self.shared.append((variable, self.make_value(dtype, shape)))
        self.variables.append(variable)
        return variable

    def make_value(
        self, dtype: str, shape: tuple[int, ...], bounds: tuple[int, int] | None = None
    ) -> Value:
        """Make a random array; ``bounds`` makes the elements integers within the bounds."""
        size = 1
        for length in shape:
            size *= length
        return Value(dtype, shape, tuple(self.make_element(dtype, bounds) for _ in range(size)))

    def make_element(self, dtype: str, bounds: tuple[int, int] | None = None) -> Any:
        """Make a random element of an array.

        If ``bounds`` is None and ``self.extreme`` is False, floats are multiples of 1/4 between -3
        and 3, and integers are between -5 and 5.
        """
        pick = self.random
        if bounds:
            integer = pick.randint(*bounds)
            return float(integer) if dtype in types.FLOATS else integer
        if dtype == "bool":
            return pick.random() < 0.5
        if dtype in types.COMPLEX:
            return (self.make_element("float32"), self.make_element("float32"))
        if dtype in types.FLOATS:
            if self.extreme and pick.random() < 0.4:
                return self.choose((float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 2.0**60))
            return pick.randint(-12, 12) / 4
        top = 2 ** (types.count_bits(dtype) - (dtype in types.SIGNED)) - 1
        low = -top - 1 if dtype in types.SIGNED else 0
        if self.extreme and pick.random() < 0.5:
            return self.choose((top, low, top - 1, low + 1, top // 2 + 1, 100, 11))
        return pick.randint(max(low, -5), 5)

    def choose_sizes(self) -> dict[str, int]:
        """Map each symbol of SIZES to a random length, for a call."""
        return {name: self.random.choices(LENGTHS, FREQUENCIES)[0] for name in SIZES}

    def make_call(self, sizes: dict[str, int]) -> tuple[Value, ...]:
        """Make the arguments of a call; ``sizes`` maps each symbol of SIZES to a length."""
        return tuple(
            self.make_value(
                variable.dtype,
                tuple(int(dim) if dim.isdigit() else sizes[dim] for dim in variable.dims),
                self.bounds.get(variable.name),
            )
            for variable in self.inputs
        )

    def make_program(self, category: str, calls: int) -> Program:
        """Return the written program, with calls on random arguments.

        If ``self.outputs`` is empty, choose outputs: variables that no statement reads, and a few
        other computed variables. Without such variables, choose the deepest variable.

        Args:
            category: the category of the program.
            calls: the number of calls.
        """
        outputs = self.outputs or self._choose_outputs()
        last = max(
            (variable for variable in self.variables),
            key=lambda variable: variable.depth,
            default=None,
        )
        if not outputs and last:
            outputs = [last.name]
        return remove_unused(
            Program(
                category,
                tuple(
                    Input(variable.name, variable.dtype, tuple(dim == "1" for dim in variable.dims))
                    for variable in self.inputs
                ),
                tuple((variable.name, value) for variable, value in self.shared),
                tuple(self.statements),
                tuple(outputs),
                tuple(self.updates),
                (),
                tuple(self.make_call(self.choose_sizes()) for _ in range(calls)),
                tolerance=self.compute_tolerance(),
            )
        )

    def compute_tolerance(self) -> float:
        """Return the permitted relative error of floats, for the narrowest type in the program."""
        if not self.rounding:
            return 0.0
        text = " ".join(text for _, text in self.statements)
        dtypes = {variable.dtype for variable in self.variables}
        if "float16" in dtypes or "float16" in text:
            return 2e-2
        if dtypes & {"float32", "complex64"} or "float32" in text:
            return 2e-4
        # Functions of integers of at most 16 bits return float32.
        small = {name for name in types.DISCRETE if types.count_bits(name) <= 16}
        return 2e-4 if dtypes & small else 1e-8

    def _choose_outputs(self) -> list[str]:
        """Choose at most four outputs: variables that no statement reads, and a few others."""
        computed = {variable.name for variable in self.variables} - {
            variable.name for variable in self.inputs
        }
        computed -= {variable.name for variable, _ in self.shared}
        used = {name for _, text in self.statements for name in find_names(text)}
        ends = [name for name, _ in self.statements if name in computed - used]
        # Add some intermediate variables.
        ends += [name for name in sorted(computed & used) if self.decide(25)]
        self.random.shuffle(ends)
        return ends[:4]
