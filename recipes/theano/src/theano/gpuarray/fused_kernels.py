"""Generation of the kernels of GpuFusedLoops, which compute all results of a Program.

A Program names values by numbers, called references. The inputs come first, and then the results of
the steps. Negative references are literals: -1 is the first literal.

If an element depends on an element of another result, the thread computes that element again
instead of loading it from memory.
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

# The largest number of lines of a kernel. Compiling a longer kernel takes longer than the launches
# that it saves.
MAX_STATEMENTS = 400
# A function that prevents a fused multiply-add across two steps. Compilers contract a product and a
# sum to a fused multiply-add, which does not round the product. In Theano's own kernels, the
# product of one kernel is rounded before the sum of the next kernel. The kernel's parameter `zero`
# is 0. The compiler does not know this, so it must round the value before the exclusive or.
ROUND = """
WITHIN_KERNEL ga_{name} round_{name}(ga_{name} value, ga_size zero) {{
    union {{ ga_{name} number; {word} bits; }} rounded;
    rounded.number = value;
    rounded.bits ^= ({word})zero;
    return rounded.number;
}}"""
# Maps a floating-point type to the integer type of the same size.
WORDS = {"float": "ga_uint", "double": "ga_ulong"}


class TooLarge(Exception):
    """Raised if a kernel would have too many statements."""


@dataclass(frozen=True)
class Literal:
    """A constant of one element in a program.

    Attributes:
        dtype: the dtype.
        ndim: the number of dimensions; None if the constant is an index on the host, not an array.
        text: the value as a C literal.
    """

    dtype: str
    ndim: int | None
    text: str


@dataclass(frozen=True)
class Step:
    """An application of an op to arguments, which are references."""

    op: Any
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """The computation of a kernel.

    Attributes:
        inputs: the number of inputs.
        literals: the literals.
        steps: the steps, in topological order.
        results: the references of the values that the kernel writes to memory.
    """

    inputs: int
    literals: tuple[Literal, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]


class Graph:
    """A program with the types of its values.

    Attributes:
        program: the program.
        variables: maps a reference to a Theano variable that has the type of the value.
        arrays: the references of the inputs that are arrays on the device.
        domains: for each loop of the kernel, the positions of its results in `program.results`. The
            results of a loop have the same number of dimensions and usually the same shape.
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
        """Return the broadcastable pattern of an array."""
        return tuple(self.variables[reference].type.broadcastable)

    def count_dimensions(self, reference: int) -> int:
        """Return the number of dimensions of an array."""
        return len(self.get_pattern(reference))

    def get_type(self, reference: int) -> str:
        """Return the type of an array's elements in kernels, such as ga_float."""
        return in_kernels(f"npy_{self.variables[reference].type.dtype}")

    def get_axis(self, step: Step, ndim: int) -> int:
        """Return the axis of a GpuJoin's step as a non-negative integer."""
        literal = self.get_literal(step.arguments[0])
        assert literal is not None
        return int(literal.text) % ndim

    def _find_domains(self) -> list[list[int]]:
        """Group the results into loops.

        Two results belong to one loop if both have one element, or if they have the same
        broadcastable pattern and elementwise steps or increments connect them.
        """
        # A union-find structure of the references that are connected.
        parents: dict[int, int] = {}

        def find_root(reference: int) -> int:
            while reference in parents:
                reference = parents[reference]
            return reference

        for reference, step in self.iterate_steps():
            if isinstance(step.op, GpuElemwise):
                pattern = self.get_pattern(reference)
                connected = [i for i in step.arguments if self.get_pattern(i) == pattern]
            else:
                connected = list(step.arguments[:1]) if isinstance(step.op, GpuIncSubtensor) else []
            for argument in connected:
                if argument >= 0 and find_root(argument) != find_root(reference):
                    parents[find_root(argument)] = find_root(reference)
        domains: dict[tuple[Any, ...], list[int]] = {}
        for position, reference in enumerate(self.program.results):
            pattern = self.get_pattern(reference)
            key = (pattern,) if all(pattern) else (pattern, find_root(reference))
            domains.setdefault(key, []).append(position)
        return list(domains.values())


def iterate_bounds(op: Any, ndim: int) -> Iterator[tuple[int, Any]]:
    """Yield the axes that a GpuIncSubtensor indexes, with their slice or index.

    Axes with the slice ":" are omitted.
    """
    for axis, entry in enumerate(op.idx_list[:ndim]):
        if entry != slice(None, None, None):
            yield axis, entry


@dataclass
class Scope:
    """A block of C code, and the values that it has computed.

    Attributes:
        lines: the lines of the kernel, to which `add` appends.
        indent: the indentation of the block.
        parent: the scope of the enclosing block, or None.
        values: maps a key, such as (reference, indices), to the C variable that has the value.
    """

    lines: list[str]
    indent: str
    parent: Scope | None = None
    values: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def find(self, key: tuple[Any, ...]) -> str | None:
        """Return the C variable for a key of `values`, also from enclosing scopes; else None."""
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
        """Return the scope of a block inside of this block."""
        return Scope(self.lines, self.indent + "    ", self)


class KernelWriter:
    """Write the C code of a graph's kernel.

    In the attributes, a domain is the number of an element of Graph.domains.

    Attributes:
        reads: maps an input to pairs of a domain and the indices with which its loop reads the
            input.
        indexed: the domains whose loops need all indices, because they contain joins or increments.
        support: the pieces of C code before the kernel, as keys.
        lines: the lines of the kernel's loops.

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
        """Write the code that computes an element of each result of a domain.

        Args:
            number: the number of the domain.
            positions: the positions of its results in `program.results`.
        """
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
            # If the results of a domain have different shapes, each launch writes only one result.
            condition = f"if (only < 0 || only == {position}) " if len(positions) > 1 else ""
            scope.add(f"{condition}{element} = {value};")
        self.lines.append("    }")

    @staticmethod
    def _write_division(index: str, size: str, total: str, scope: Scope) -> None:
        """Write code that divides the C variable `remainder` by `size`.

        The code sets `index` to the remainder of the division, and `remainder` to the quotient. If
        the number of elements, `total`, fits in 32 bits, the operands have 32 bits, because such a
        division is faster.
        """
        for condition, kind in ((f"if ({total} <= 0xffffffffu)", "ga_uint"), ("else", "ga_size")):
            scope.add(
                f"    {condition} {{ {index} = ({kind})remainder % ({kind}){size};"
                f" remainder = ({kind})remainder / ({kind}){size}; }}"
            )

    def _format_element(self, array: str, reference: int, indices: Sequence[str]) -> str:
        """Return the C expression of an array's element.

        Args:
            array: the C name of the array, such as i0 or o0.
            reference: the reference of the array.
            indices: the C expressions of the indices.
        """
        terms = [
            f" + {index} * {array}_s{axis}" for axis, index in enumerate(indices) if index != "0"
        ]
        kind = self.graph.get_type(reference)
        return (
            f"*(GLOBAL_MEM {kind} *)((GLOBAL_MEM char *){array} + {array}_offset{''.join(terms)})"
        )

    def _write_value(self, reference: int, indices: tuple[str, ...], scope: Scope) -> str:
        """Write code that computes an element of a value; return the C variable that holds it."""
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
        """Write code that sets the C variable `name` to the element of an elementwise step."""
        values = [self._write_value(argument, indices, scope) for argument in step.arguments]
        dtypes = [self.graph.variables[argument].type.dtype for argument in step.arguments]
        node = step.op.scalar_op.make_node(*[get_scal(dtype)() for dtype in dtypes])
        code = node.op.c_code(node, name, values, [name], {"fail": "return;"})
        with contextlib.suppress(MethodNotDefined):
            # Remove line continuations, because the source of the kernel becomes a C string.
            self.support[node.op.c_support_code().replace("\\\n", " ")] = None
        kind = self.graph.get_type(reference)
        scope.add(f"{kind} {name};")
        # Start a new line, because the code may begin with a preprocessor directive.
        scope.add("{\n" + in_kernels(code) + "\n}")
        function = kind.removeprefix("ga_")
        if reference in self._used and function in WORDS:
            self.support[ROUND.format(name=function, word=WORDS[function])] = None
            scope.add(f"{name} = round_{function}({name}, zero);")

    def _write_index(self, index: str, length: str, scope: Scope) -> str:
        """Write code for an index along an axis that is broadcast if its length is 1."""
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
        """Write code that sets the C variable `name` to the element of a join."""
        arrays = step.arguments[1:]
        axis = self.graph.get_axis(step, len(indices))
        index = self._write_index(indices[axis], f"j{reference}_{len(arrays) - 1}", scope)
        scope.add(f"{self.graph.get_type(reference)} {name};")
        begin = "0"
        for number, array in enumerate(arrays):
            end = f"j{reference}_{number}"
            last = number == len(arrays) - 1
            scope.add("{" if last else f"if ({index} < {end}) {{")
            inner = scope.open()
            array_indices = (*indices[:axis], f"({index} - {begin})", *indices[axis + 1 :])
            inner.add(f"{name} = {self._write_value(array, array_indices, inner)};")
            scope.add("}" if last else "} else")
            begin = end

    def _write_increment(
        self, step: Step, reference: int, indices: tuple[str, ...], scope: Scope, name: str
    ) -> None:
        """Write code that sets the C variable `name` to the element of an increment."""
        array, increment = step.arguments[:2]
        value = self._write_value(array, indices, scope)
        scope.add(f"{self.graph.get_type(reference)} {name} = {value};")
        conditions, shifted, removed_axes = [], list(indices), []
        for axis, entry in iterate_bounds(step.op, len(indices)):
            begin, end = f"b{reference}_{axis}", f"e{reference}_{axis}"
            index = self._write_index(indices[axis], f"m{reference}_{axis}", scope)
            conditions.append(f"{index} >= {begin} && {index} < {end}")
            shifted[axis] = f"({index} - {begin})"
            if not isinstance(entry, slice):
                removed_axes.append(axis)
        scope.add(f"if ({' && '.join(conditions) or '1'}) {{")
        inner = scope.open()
        increment_indices = tuple(
            index for axis, index in enumerate(shifted) if axis not in removed_axes
        )
        addend = self._write_value(increment, increment_indices, inner)
        inner.add(f"{name} {'=' if step.op.set_instead_of_inc else '+='} {addend};")
        scope.add("}")


def list_inplace(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield pairs of a result's position and an input that the result can overwrite.

    This is safe if the thread that writes an element of the result is the only thread that reads
    the same element of the input.
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
    """Return a Literal for a finite constant of one element; None for other constants."""
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
