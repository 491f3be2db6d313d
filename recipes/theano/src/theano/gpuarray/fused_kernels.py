"""Kernels of GpuFusedLoops: write the C code that computes elements of all results of a program.

If the kernel reads its own result, the thread computes the element again instead of loading it from
memory.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import scalar
from theano.gof.utils import MethodNotDefined
from theano.gpuarray.basic_ops import GpuJoin
from theano.gpuarray.c_types import in_kernels
from theano.gpuarray.elemwise import GpuElemwise, get_scal
from theano.gpuarray.subtensor import GpuIncSubtensor
from theano.gpuarray.type import GpuArrayType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from theano.gof.graph import Variable

# Compilation of more statements takes longer than the launches that a kernel saves.
MAX_STATEMENTS = 400
# Compilers contract a product and a sum to a fused multiply-add. Theano's own kernels round the
# product of one kernel before the sum of the next. The kernel's parameter `zero` is 0, which the
# compiler does not know, so it cannot look through this function.
ROUND = """
WITHIN_KERNEL ga_{name} round_{name}(ga_{name} value, ga_size zero) {{
    union {{ ga_{name} number; {word} bits; }} rounded;
    rounded.number = value;
    rounded.bits ^= ({word})zero;
    return rounded.number;
}}"""
WORDS = {"float": "ga_uint", "double": "ga_ulong"}


class TooLarge(Exception):
    """Raised if a kernel would have too many statements."""


@dataclass(frozen=True)
class Literal:
    """A scalar constant of a program: its dtype, its number of dimensions, and its text in C.

    An index of the host has no dimensions: ``ndim`` is None.
    """

    dtype: str
    ndim: int | None
    text: str


@dataclass(frozen=True)
class Step:
    """An application of an op. The arguments number the inputs, then the results of earlier steps.

    A negative argument is a literal: -1 is the first literal.
    """

    op: Any
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """Steps in topological order, and the references of the results that leave the kernel."""

    inputs: int
    literals: tuple[Literal, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]


class Graph:
    """A program with the types of its inputs: variables, shapes and results by reference.

    Attributes:
        variables: the variable of each reference.
        domains: the positions of the results of each loop. The results of a loop normally have one
            shape.
    """

    def __init__(self, program: Program, inputs: Sequence[Variable]) -> None:
        self.program = program
        self.variables: dict[int, Any] = dict(enumerate(inputs))
        self.arrays = [i for i, v in enumerate(inputs) if isinstance(v.type, GpuArrayType)]
        context_name = inputs[self.arrays[0]].type.context_name
        for number, literal in enumerate(program.literals):
            if literal.ndim is None:
                variable = scalar.get_scalar_type(literal.dtype)()
            else:
                variable = GpuArrayType(literal.dtype, (True,) * literal.ndim, context_name)()
            self.variables[-1 - number] = variable
        for reference, step in self.iterate_steps():
            arguments = [self.variables[argument] for argument in step.arguments]
            self.variables[reference] = step.op.make_node(*arguments).outputs[0]
        self.domains = self._find_domains()

    def iterate_steps(self) -> Iterator[tuple[int, Step]]:
        """Yield the reference of each step, and the step."""
        return enumerate(self.program.steps, self.program.inputs)

    def get_step(self, reference: int) -> Step | None:
        """Return the step of a reference, or None for an input or a literal."""
        number = reference - self.program.inputs
        return self.program.steps[number] if number >= 0 else None

    def get_literal(self, reference: int) -> Literal | None:
        """Return the literal of a reference, or None."""
        return self.program.literals[-1 - reference] if reference < 0 else None

    def get_pattern(self, reference: int) -> tuple[bool, ...]:
        """Return the broadcastable dimensions of an array."""
        return tuple(self.variables[reference].type.broadcastable)

    def count_dimensions(self, reference: int) -> int:
        """Return the number of dimensions of an array."""
        return len(self.get_pattern(reference))

    def get_type(self, reference: int) -> str:
        """Return libgpuarray's name of the type of an array's elements."""
        return in_kernels(f"npy_{self.variables[reference].type.dtype}")

    def get_axis(self, step: Step, ndim: int) -> int:
        """Return the axis of a join, counted from the first."""
        literal = self.get_literal(step.arguments[0])
        assert literal is not None
        return int(literal.text) % ndim

    def _find_domains(self) -> list[list[int]]:
        parents: dict[int, int] = {}

        def find(reference: int) -> int:
            while reference in parents:
                reference = parents[reference]
            return reference

        for reference, step in self.iterate_steps():
            if isinstance(step.op, GpuElemwise):
                pattern = self.get_pattern(reference)
                same = [i for i in step.arguments if self.get_pattern(i) == pattern]
            else:
                same = list(step.arguments[:1]) if isinstance(step.op, GpuIncSubtensor) else []
            for argument in same:
                if argument >= 0 and find(argument) != find(reference):
                    parents[find(argument)] = find(reference)
        domains: dict[tuple[Any, ...], list[int]] = {}
        for position, reference in enumerate(self.program.results):
            pattern = self.get_pattern(reference)
            key = (pattern,) if all(pattern) else (pattern, find(reference))
            domains.setdefault(key, []).append(position)
        return list(domains.values())


def iterate_bounds(op: Any, ndim: int) -> Iterator[tuple[int, Any]]:
    """Yield the axes that a GpuIncSubtensor indexes, and their slice or index."""
    for axis, entry in enumerate(op.idx_list[:ndim]):
        if entry != slice(None, None, None):
            yield axis, entry


@dataclass
class Scope:
    """C code in which the values of elements are already computed.

    ``values`` has the C variable of a reference at given indices.
    """

    lines: list[str]
    indent: str
    parent: Scope | None = None
    values: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def find(self, key: tuple[Any, ...]) -> str | None:
        """Return the variable with a value, if an enclosing scope has computed it."""
        scope: Scope | None = self
        while scope is not None:
            if key in scope.values:
                return scope.values[key]
            scope = scope.parent
        return None

    def add(self, line: str) -> None:
        """Append a line of C code."""
        self.lines.append(self.indent + line)

    def open(self) -> Scope:
        """Return the scope of a block within this scope."""
        return Scope(self.lines, self.indent + "    ", self)


class KernelWriter:
    """Write the kernel of a graph.

    Attributes:
        reads: maps an input to the domains and indices in which the kernel reads it.
        indexed: the domains that compare indices.
        support: C code before the kernel.
        lines: the statements of all domains.

    Raises:
        TooLarge: the kernel would have too many statements.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.reads: dict[int, set[tuple[int, tuple[str, ...]]]] = {}
        self.indexed: set[int] = set()
        self.support: dict[str, None] = {}
        self.lines: list[str] = []
        self._names = (f"v{number}" for number in itertools.count())
        self._used = {i for step in graph.program.steps for i in step.arguments}
        self._domain = 0
        for number, positions in enumerate(graph.domains):
            self._domain = number
            self._write_domain(number, positions)

    def _write_domain(self, number: int, positions: Sequence[int]) -> None:
        results = self.graph.program.results
        ndim = self.graph.count_dimensions(results[positions[0]])
        # The last dimension changes fastest.
        indices = tuple(f"x{number}_{axis}" for axis in range(ndim))
        first = " + ".join(f"n{earlier}" for earlier in range(number)) or "0"
        self.lines.append(f"    if (i >= {first} && i < {first} + n{number}) {{")
        scope = Scope(self.lines, "        ")
        scope.add(f"ga_size remainder = i - ({first});")
        for index in indices:
            scope.add(f"ga_ssize {index} = 0;")
        if ndim:
            scope.add(f"if (flat{number}) {indices[-1]} = remainder; else {{")
            for axis in reversed(range(ndim)):
                self._write_division(indices[axis], f"d{number}_{axis}", f"n{number}", scope)
            scope.add("}")
        values = [self._write_value(results[position], indices, scope) for position in positions]
        for position, value in zip(positions, values, strict=True):
            element = self._format_element(f"o{position}", results[position], indices)
            # If the results have different shapes, each launch writes one result.
            condition = f"if (only < 0 || only == {position}) " if len(positions) > 1 else ""
            scope.add(f"{condition}{element} = {value};")
        self.lines.append("    }")

    @staticmethod
    def _write_division(index: str, size: str, total: str, scope: Scope) -> None:
        """Divide the remainder; with 32 bits if they suffice, because that is faster."""
        for condition, kind in ((f"if ({total} <= 0xffffffffu)", "ga_uint"), ("else", "ga_size")):
            scope.add(
                f"    {condition} {{ {index} = ({kind})remainder % ({kind}){size};"
                f" remainder = ({kind})remainder / ({kind}){size}; }}"
            )

    def _format_element(self, array: str, reference: int, indices: Sequence[str]) -> str:
        """Return an element of an array as a C expression."""
        terms = [
            f" + {index} * {array}_s{axis}" for axis, index in enumerate(indices) if index != "0"
        ]
        kind = self.graph.get_type(reference)
        return (
            f"*(GLOBAL_MEM {kind} *)((GLOBAL_MEM char *){array} + {array}_offset{''.join(terms)})"
        )

    def _write_value(self, reference: int, indices: tuple[str, ...], scope: Scope) -> str:
        """Write code for an element; return the C variable that has its value."""
        indices = tuple(
            "0" if broadcast else index
            for broadcast, index in zip(self.graph.get_pattern(reference), indices, strict=True)
        )
        literal = self.graph.get_literal(reference)
        key = (reference,) if literal else (reference, indices)
        if variable := scope.find(key):
            return variable
        if len(self.lines) > MAX_STATEMENTS:
            raise TooLarge
        step = self.graph.get_step(reference)
        kind = self.graph.get_type(reference)
        name = next(self._names)
        if literal:
            scope.add(f"const {kind} {name} = {literal.text};")
        elif step is None:
            self.reads.setdefault(reference, set()).add((self._domain, indices))
            element = self._format_element(f"i{reference}", reference, indices)
            scope.add(f"const {kind} {name} = {element};")
        elif isinstance(step.op, GpuElemwise):
            self._write_elemwise(step, reference, indices, scope, name)
        else:
            self.indexed.add(self._domain)
            write = self._write_join if isinstance(step.op, GpuJoin) else self._write_increment
            write(step, reference, indices, scope, name)
        scope.values[key] = name
        return name

    def _write_elemwise(
        self, step: Step, reference: int, indices: tuple[str, ...], scope: Scope, name: str
    ) -> None:
        values = [self._write_value(argument, indices, scope) for argument in step.arguments]
        dtypes = [self.graph.variables[argument].type.dtype for argument in step.arguments]
        node = step.op.scalar_op.make_node(*[get_scal(dtype)() for dtype in dtypes])
        code = node.op.c_code(node, name, values, [name], {"fail": "return;"})
        with contextlib.suppress(MethodNotDefined):
            # Remove line continuations, because the kernel's source becomes a C string.
            self.support[node.op.c_support_code().replace("\\\n", " ")] = None
        kind = self.graph.get_type(reference)
        scope.add(f"{kind} {name};")
        # Directives of the preprocessor start at the beginning of a line.
        scope.add("{\n" + in_kernels(code) + "\n}")
        function = kind.removeprefix("ga_")
        if reference in self._used and function in WORDS:
            self.support[ROUND.format(name=function, word=WORDS[function])] = None
            scope.add(f"{name} = round_{function}({name}, zero);")

    def _write_index(self, index: str, length: str, scope: Scope) -> str:
        """Write code for an index of an array whose length may be 1 and is broadcast."""
        key = (index, length)
        name = scope.find(key)
        if name is None:
            name = next(self._names)
            scope.add(f"const ga_ssize {name} = {index} < {length} ? {index} : 0;")
            scope.values[key] = name
        return name

    def _write_join(
        self, step: Step, reference: int, indices: tuple[str, ...], scope: Scope, name: str
    ) -> None:
        arrays = step.arguments[1:]
        axis = self.graph.get_axis(step, len(indices))
        index = self._write_index(indices[axis], f"j{reference}_{len(arrays) - 1}", scope)
        scope.add(f"{self.graph.get_type(reference)} {name};")
        before = "0"
        for number, array in enumerate(arrays):
            end = f"j{reference}_{number}"
            last = number == len(arrays) - 1
            scope.add("{" if last else f"if ({index} < {end}) {{")
            inner = scope.open()
            at = (*indices[:axis], f"({index} - {before})", *indices[axis + 1 :])
            inner.add(f"{name} = {self._write_value(array, at, inner)};")
            scope.add("}" if last else "} else")
            before = end

    def _write_increment(
        self, step: Step, reference: int, indices: tuple[str, ...], scope: Scope, name: str
    ) -> None:
        array, increment = step.arguments[:2]
        value = self._write_value(array, indices, scope)
        scope.add(f"{self.graph.get_type(reference)} {name} = {value};")
        conditions, at, removed = [], list(indices), []
        for axis, entry in iterate_bounds(step.op, len(indices)):
            begin, end = f"b{reference}_{axis}", f"e{reference}_{axis}"
            index = self._write_index(indices[axis], f"m{reference}_{axis}", scope)
            conditions.append(f"{index} >= {begin} && {index} < {end}")
            at[axis] = f"({index} - {begin})"
            if not isinstance(entry, slice):
                removed.append(axis)
        scope.add(f"if ({' && '.join(conditions) or '1'}) {{")
        inner = scope.open()
        inner_indices = tuple(index for axis, index in enumerate(at) if axis not in removed)
        other = self._write_value(increment, inner_indices, inner)
        inner.add(f"{name} {'=' if step.op.set_instead_of_inc else '+='} {other};")
        scope.add("}")


def list_inplace(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a result and an input whose memory it can take.

    Only the thread that writes an element reads the element of that input.
    """
    reads = KernelWriter(graph).reads
    for domain, positions in enumerate(graph.domains):
        for position in positions:
            result = graph.variables[graph.program.results[position]]
            identity = {(domain, tuple(f"x{domain}_{k}" for k in range(result.type.ndim)))}
            for i in graph.arrays:
                if graph.variables[i].type == result.type and reads.get(i) == identity:
                    yield position, i


def make_literal(variable: Any) -> Literal | None:
    """Return a finite constant of one element as a literal; None for other constants."""
    value = np.asarray(variable.data)
    if value.size != 1 or value.dtype.kind not in "biuf" or not np.isfinite(value).all():
        return None
    is_array = isinstance(variable.type, GpuArrayType)
    if is_array and not all(variable.type.broadcastable):
        return None
    number = value.item()
    if value.dtype.kind == "f":
        text = repr(float(number))
    elif number == np.iinfo("int64").min:
        # C has no literal for the least int64.
        return None
    else:
        text = repr(int(number)) + {"uint64": "ULL", "int64": "LL"}.get(str(value.dtype), "")
    return Literal(variable.type.dtype, variable.type.ndim if is_array else None, text)
