"""Writes a program, variable by variable."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fuzz.grammar import types
from fuzz.program import Input, Program, Value, live, read

# Lengths that are known when a function is called, and how often each is one of LENGTHS.
SIZES = ("a", "b", "c", "d")
LENGTHS = (0, 1, 2, 3, 4, 5, 7)
FREQUENCIES = (4, 4, 6, 8, 4, 3, 1)

Option = TypeVar("Option")


@dataclass(frozen=True)
class Variable:
    """A variable of the program.

    Args:
        dims: for each dimension "1" if it is broadcastable, a number if the length is known, one of
            SIZES or a text that is the same for lengths which are.
        exact: floats are computed without rounding from inputs of few bits.
        depth: how many operations it is away from inputs.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    exact: bool = False
    depth: int = 0

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.dims)

    @property
    def discrete(self) -> bool:
        """Whether it holds integers or booleans."""
        return self.dtype in types.DISCRETE


@dataclass
class Writer:
    """The program so far; ``extreme`` says that values may overflow, and be nan and infinite."""

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

    def chance(self, percent: int) -> bool:
        """Yes, so often."""
        return self.random.randrange(100) < percent

    def choice(self, options: Sequence[Option]) -> Option:
        """One of them."""
        return options[self.random.randrange(len(options))]

    def dtype(self, among: Sequence[str] = types.ALL) -> str:
        """A type for an input."""
        names = [name for name in types.WEIGHTS if name in among]
        return self.random.choices(names, [types.WEIGHTS[name] for name in names])[0]

    def dims(self, ndim: int, broadcastable: int = 12) -> tuple[str, ...]:
        """Dimensions for an input, so many percent of them broadcastable."""
        return tuple(
            "1" if self.chance(broadcastable) else self.choice(SIZES[:3]) for _ in range(ndim)
        )

    def input(
        self, dtype: str, dims: tuple[str, ...], bounds: tuple[int, int] | None = None
    ) -> Variable:
        """A new input, of integers within bounds if they are given.

        A length that another variable was computed to have is one of its own.
        """
        dims = tuple(dim if dim in SIZES or dim.isdigit() else SIZES[0] for dim in dims)
        variable = Variable(f"x{len(self.inputs)}", dtype, dims, dtype != "float16")
        self.inputs.append(variable)
        self.variables.append(variable)
        if bounds:
            self.bounds[variable.name] = bounds
        return variable

    def some(
        self,
        among: Sequence[str] = types.ALL,
        ndim: int | Sequence[int] = (0, 1, 1, 2, 2, 3),
        where: Callable[[Variable], bool] = lambda _: True,
        new: int = 25,
    ) -> Variable:
        """A variable of one of these types, a new input if there is none or by chance."""
        allowed = (ndim,) if isinstance(ndim, int) else tuple(ndim)
        found = [
            each
            for each in self.variables
            if each.dtype in among and each.ndim in allowed and where(each)
        ]
        if found and not self.chance(new):
            # Late ones more often, so that there are chains.
            return found[max(self.random.randrange(len(found)) for _ in range(2))]
        return self.input(self.dtype(among), self.dims(self.choice(allowed)))

    def like(self, variable: Variable, among: Sequence[str] = types.ALL) -> Variable:
        """A variable that can be broadcast with another one: of its lengths, or a scalar."""

        def fits(other: Variable) -> bool:
            pairs = zip(reversed(other.dims), reversed(variable.dims))
            return all(one == two or "1" in (one, two) for one, two in pairs)

        found = [each for each in self.variables if each.dtype in among and fits(each)]
        if variable in found and not self.chance(12):
            # Of a variable and itself there is little to compute.
            found.remove(variable)
        if found and not self.chance(25):
            return found[max(self.random.randrange(len(found)) for _ in range(2))]
        known = [each in SIZES or each.isdigit() for each in variable.dims]
        if not all(known):
            first = len(known) - known[::-1].index(False)
            return self.input(self.dtype(among), variable.dims[first:])
        dims = tuple("1" if self.chance(20) else each for each in variable.dims)
        return self.input(self.dtype(among), dims[self.choice((0, 0, 0, len(dims))) :])

    def add(
        self, text: str, dtype: str, dims: Sequence[str], *of: Variable, exact: bool = False
    ) -> Variable:
        """A statement that computes a variable from others, exactly if these are exact."""
        depth = 1 + max((each.depth for each in of), default=0)
        exact = dtype in types.DISCRETE or (exact and depth < 5 and all(e.exact for e in of))
        variable = Variable(f"v{len(self.statements)}", dtype, tuple(dims), exact, depth)
        self.statements.append((variable.name, text))
        self.variables.append(variable)
        return variable

    def say(self, text: str) -> str:
        """A statement whose value is no variable; its name."""
        name = f"v{len(self.statements)}"
        self.statements.append((name, text))
        return name

    def share(self, dtype: str, shape: tuple[int, ...]) -> Variable:
        """A new shared variable."""
        dims = tuple(map(str, shape))
        variable = Variable(f"s{len(self.shared)}", dtype, dims, dtype != "float16")
        self.shared.append((variable, self.value(dtype, shape)))
        self.variables.append(variable)
        return variable

    def value(
        self, dtype: str, shape: tuple[int, ...], bounds: tuple[int, int] | None = None
    ) -> Value:
        """An array of elements that a program of this kind is called with."""
        size = 1
        for length in shape:
            size *= length
        return Value(dtype, shape, tuple(self.element(dtype, bounds) for _ in range(size)))

    def element(self, dtype: str, bounds: tuple[int, int] | None = None) -> Any:
        """An element of an array."""
        pick = self.random
        if bounds:
            found = pick.randint(*bounds)
            return float(found) if dtype in types.FLOATS else found
        if dtype == "bool":
            return pick.random() < 0.5
        if dtype in types.COMPLEX:
            return (self.element("float32"), self.element("float32"))
        if dtype in types.FLOATS:
            if self.extreme and pick.random() < 0.4:
                return self.choice((float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 2.0**60))
            return pick.randint(-12, 12) / 4
        top = 2 ** (types.bits(dtype) - (dtype in types.SIGNED)) - 1
        low = -top - 1 if dtype in types.SIGNED else 0
        if self.extreme and pick.random() < 0.5:
            return self.choice((top, low, top - 1, low + 1, top // 2 + 1, 100, 11))
        return pick.randint(max(low, -5), 5)

    def sizes(self) -> dict[str, int]:
        """Lengths of a call."""
        return {name: self.random.choices(LENGTHS, FREQUENCIES)[0] for name in SIZES}

    def call(self, sizes: dict[str, int]) -> tuple[Value, ...]:
        """The values of a call."""
        return tuple(
            self.value(
                each.dtype,
                tuple(int(dim) if dim.isdigit() else sizes[dim] for dim in each.dims),
                self.bounds.get(each.name),
            )
            for each in self.inputs
        )

    def program(self, category: str, calls: int) -> Program:
        """What was written, called so often; without outputs all that nothing reads are."""
        outputs = self.outputs or self._ends()
        last = max((each for each in self.variables), key=lambda each: each.depth, default=None)
        if not outputs and last:
            outputs = [last.name]
        return live(
            Program(
                category,
                tuple(
                    Input(each.name, each.dtype, tuple(dim == "1" for dim in each.dims))
                    for each in self.inputs
                ),
                tuple((each.name, value) for each, value in self.shared),
                tuple(self.statements),
                tuple(outputs),
                tuple(self.updates),
                (),
                tuple(self.call(self.sizes()) for _ in range(calls)),
                tolerance=self.tolerance(),
            )
        )

    def tolerance(self) -> float:
        """The relative error that floats may have, by the smallest type there is."""
        if not self.rounding:
            return 0.0
        text = " ".join(text for _, text in self.statements)
        dtypes = {each.dtype for each in self.variables}
        if "float16" in dtypes or "float16" in text:
            return 2e-2
        if dtypes & {"float32", "complex64"} or "float32" in text:
            return 2e-4
        # Integers of few bits become float32.
        small = {name for name in types.DISCRETE if types.bits(name) <= 16}
        return 2e-4 if dtypes & small else 1e-8

    def _ends(self) -> list[str]:
        known = {each.name for each in self.variables} - {each.name for each in self.inputs}
        known -= {each.name for each, _ in self.shared}
        used = {name for _, text in self.statements for name in read(text)}
        ends = [name for name, _ in self.statements if name in known - used]
        # And some of what is computed on the way.
        ends += [name for name in sorted(known & used) if self.chance(25)]
        self.random.shuffle(ends)
        return ends[:4]
