"""GpuFusedLoops: compute several elementwise results, of one or more shapes, in one kernel.

Theano's own fusion makes one kernel per result. For example, a step of an LSTM's gradient launches
kernels for its gates, for the slices that it increments, and for its states. A launch takes longer
than the arithmetic.

fused_kernels.py writes the kernel. This module writes the code that runs on the host. fuse_loops.py
changes graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from theano.gof import Op
from theano.gof.graph import Apply
from theano.gpuarray.basic_ops import GpuJoin, GpuKernelBase, Kernel, gpuarray_helper_inc_dir
from theano.gpuarray.elemwise import GpuElemwise
from theano.gpuarray.fused_kernels import Graph, KernelWriter, Program, Step, iterate_bounds
from theano.gpuarray.subtensor import GpuIncSubtensor
from theano.gpuarray.type import GpuArrayType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from theano.gof.graph import Variable

# The number of threads of a block, and the largest number of blocks. If there are more elements,
# each thread computes several.
THREADS, BLOCKS = 256, 4096
# Maps a kind of parameter to the beginning of its declaration in the kernel.
PARAMETERS = {
    "array": "GLOBAL_MEM char *",
    "size": "const ga_size ",
    "difference": "const ga_ssize ",
}


class GpuFusedLoops(GpuKernelBase, Op):
    """Compute the results of a program in one kernel.

    Attributes:
        program: the program (fused_kernels.py).
        inplace: pairs of a result's position and the number of the input that it overwrites.
    """

    __props__ = ("program", "inplace")
    _f16_ok = False

    def __init__(self, program: Program, inplace: tuple[tuple[int, int], ...] = ()) -> None:
        self.program, self.inplace = program, tuple(inplace)
        if inplace:
            self.destroy_map = {result: [number] for result, number in inplace}

    def __str__(self) -> str:
        names = [
            str(getattr(step.op, "scalar_op", type(step.op).__name__))
            for step in self.program.steps
        ]
        return f"GpuFusedLoops{{{', '.join(names)}}}{list(self.inplace) or ''}"

    def make_node(self, *inputs: Variable) -> Apply:
        """Return a node whose outputs have the types of the program's results."""
        graph = Graph(self.program, inputs)
        return Apply(self, list(inputs), [graph.variables[i].type() for i in self.program.results])

    def get_params(self, node: Apply) -> Any:
        """Return the context of the arrays: libgpuarray's handle of their device."""
        return node.outputs[0].type.context

    def c_headers(self) -> list[str]:
        return ["<numpy_compat.h>", "<gpuarray/types.h>", "<fused_loops.h>"]

    def c_header_dirs(self) -> list[str]:
        return [*super().c_header_dirs(), gpuarray_helper_inc_dir()]

    def c_code_cache_version(self) -> tuple[Any, ...]:
        """Return the versions of this code and of all scalar ops, or () if an op has no version."""
        versions = [
            step.op.scalar_op.c_code_cache_version()
            for step in self.program.steps
            if isinstance(step.op, GpuElemwise)
        ]
        return (2, *versions) if all(versions) else ()

    def gpu_kernels(self, node: Apply, name: str) -> list[Kernel]:
        """Return the kernel that computes all results."""
        from pygpu.gpuarray import SIZE, SSIZE, GpuArray  # noqa: PLC0415 (comes with devices)

        graph = Graph(self.program, node.inputs)
        writer = KernelWriter(graph)
        parameters = list_parameters(graph)
        heads = ", ".join(PARAMETERS[kind] + parameter for kind, parameter, _ in parameters)
        body = "\n".join(writer.lines)
        code = (
            "\n".join(['#include "cluda.h"', *writer.support])
            + f"\nKERNEL void fused({heads}) {{\n"
            f"  for (ga_size i = (ga_size)GID_0 * LDIM_0 + LID_0; i < {add_sizes(graph)};"
            f" i += (ga_size)GDIM_0 * LDIM_0) {{\n{body}\n  }}\n}}\n"
        )
        types = {"array": GpuArray, "size": SIZE, "difference": SSIZE}
        dtypes = [
            v.type.dtype for v in graph.variables.values() if isinstance(v.type, GpuArrayType)
        ]
        return [
            Kernel(
                code=code,
                name="fused",
                params=[types[kind] for kind, _, _ in parameters],
                flags=Kernel.get_flags(*dtypes),
                objvar=f"fused_{name}",
                codevar=f"kcode_fused_{name}",
                fname=f"fused_{name}_call",
                sname=f"fused_{name}_scall",
            )
        ]

    def c_code(
        self, node: Apply, name: str, inputs: list[str], outputs: list[str], sub: dict[str, Any]
    ) -> str:
        """Return C code that checks shapes, allocates the results and launches the kernel."""
        graph = Graph(self.program, node.inputs)
        arguments = ", ".join(text for _, _, text in list_parameters(graph))
        launch = f"""
    auto launch = [&](ssize_t only) -> int {{
        size_t total = {add_sizes(graph)}, threads = {THREADS};
        size_t blocks = (total + threads - 1) / threads;
        if (total == 0)
            return 0;
        if (blocks > {BLOCKS})
            blocks = {BLOCKS};
        int status = fused_{name}_call(1, &blocks, &threads, 0, {arguments});
        if (status == GA_NO_ERROR)
            return 0;
        PyErr_Format(PyExc_RuntimeError, "GpuFusedLoops: %s",
                     gpucontext_error({sub["params"]}->ctx, status));
        return -1;
    }};"""
        writer = HostWriter(graph, dict(self.inplace), inputs, outputs, sub["params"])
        # The lambda returns -1 on errors, because the code "fail" jumps to a label outside of the
        # lambda.
        return f"""
auto compute = [&]() -> int {{
{writer.write(launch)}
    return 0;
}};
if (compute()) {{
    {sub["fail"]}
}}
"""


def add_sizes(graph: Graph) -> str:
    """Return the number of elements of all loops as a C expression."""
    return " + ".join(f"n{number}" for number in range(len(graph.domains)))


def list_parameters(graph: Graph) -> list[tuple[str, str, str]]:
    """Return the kernel's parameters: key of PARAMETERS, name, and C expression on the host.

    Names have these forms, where D numbers the domains (Graph.domains), R is a reference, K is an
    axis, I an input and P the position of a result:

    - zero: 0 (see fused_kernels.ROUND)
    - only: the position of the only result to write, or -1
    - nD: the number of elements of a domain; dD_K: its length along an axis
    - flatD: whether one number can index all arrays of a domain
    - jR_N: the end of array N in a join
    - bR_K, eR_K, mR_K: begin and end of the slice that an increment changes, and the array's length
    - iI, oP: the memory of an input or result, with iI_offset in bytes, and iI_sK for its strides
    """
    results = graph.program.results
    parameters = [("size", "zero", "0"), ("difference", "only", "only")]
    for number, positions in enumerate(graph.domains):
        parameters.append(("size", f"n{number}", f"n{number}"))
        parameters.append(("size", f"flat{number}", f"flat{number}"))
        ndim = graph.count_dimensions(results[positions[0]])
        parameters += [("size", f"d{number}_{k}", f"d{number}[{k}]") for k in range(ndim)]
    for reference, step in graph.iterate_steps():
        names: list[str] = []
        if isinstance(step.op, GpuJoin):
            names = [f"j{reference}_{k}" for k in range(len(step.arguments) - 1)]
        elif isinstance(step.op, GpuIncSubtensor):
            bounds = iterate_bounds(step.op, graph.count_dimensions(reference))
            names = [f"{letter}{reference}_{axis}" for axis, _ in bounds for letter in "bem"]
        parameters += [("difference", name, name) for name in names]
    arrays = [(f"i{i}", graph.count_dimensions(i)) for i in graph.arrays]
    arrays += [(f"o{k}", graph.count_dimensions(i)) for k, i in enumerate(results)]
    for name, ndim in arrays:
        parameters.append(("array", name, f"a_{name}->ga.data"))
        parameters.append(("size", f"{name}_offset", f"a_{name}->ga.offset"))
        parameters += [("difference", f"{name}_s{k}", f"{name}_s[{k}]") for k in range(ndim)]
    return parameters


class HostWriter:
    """Write the C code that runs on the host: checks of shapes, allocations, and launches."""

    def __init__(
        self,
        graph: Graph,
        inplace: dict[int, int],
        inputs: Sequence[str],
        outputs: Sequence[str],
        context: str,
    ) -> None:
        self.graph, self.inplace, self.context = graph, inplace, context
        self.kernel = KernelWriter(graph)
        self.inputs, self.outputs = inputs, outputs
        self.lines: list[str] = []

    def write(self, launch: str) -> str:
        """Return the body of a C++ function that returns -1 on errors.

        Args:
            launch: the definition of a lambda `launch`, which launches the kernel. Its parameter is
                the position of the only result to write, or -1 for all results.
        """
        graph = self.graph
        for i in graph.arrays:
            self._write_input(i)
        for number, literal in enumerate(graph.program.literals):
            self._add_shape(f"l{number}", literal.ndim or 0)
        for reference, step in graph.iterate_steps():
            self._add_shape(f"s{reference}", graph.count_dimensions(reference))
            if isinstance(step.op, GpuElemwise):
                self._write_elemwise(reference, step)
            elif isinstance(step.op, GpuJoin):
                self._write_join(reference, step)
            else:
                self._write_increment(reference, step)
        self._write_results()
        for number, positions in enumerate(graph.domains):
            self._write_flat(number, positions)
        self.lines.append(launch)
        self._write_launches()
        return "\n".join(self.lines)

    def _add(self, line: str) -> None:
        self.lines.append("    " + line)

    def _add_check(self, call: str) -> None:
        """Append a call of a C function, and return -1 if it fails."""
        self._add(f"if ({call})\n        return -1;")

    def _add_shape(self, name: str, ndim: int) -> None:
        """Append the definition of a shape whose lengths are 1."""
        self._add(f"size_t {name}[{ndim + 1}] = {{{', '.join(['1'] * (ndim + 1))}}};")

    def _format_shape(self, reference: int) -> str:
        """Return a C expression for the array that contains a value's shape."""
        if reference < 0:
            return f"l{-1 - reference}"
        if self.graph.get_step(reference) is None:
            return f"PyGpuArray_DIMS(a_i{reference})"
        return f"s{reference}"

    def _format_number(self, reference: int) -> str:
        """Return the C expression of a scalar on the host."""
        literal = self.graph.get_literal(reference)
        return literal.text if literal else self.inputs[reference]

    def _write_input(self, i: int) -> None:
        """Write code that checks an input's number of dimensions and reads its strides."""
        ndim = self.graph.count_dimensions(i)
        self._add(f"PyGpuArrayObject *a_i{i} = {self.inputs[i]};")
        self._add(f"if (PyGpuArray_NDIM(a_i{i}) != {ndim}) {{")
        self._add(
            f'    PyErr_Format(PyExc_TypeError, "need {ndim} dims, not %u",'
            f" PyGpuArray_NDIM(a_i{i}));"
        )
        self._add("    return -1;\n    }")
        self._add(f"ssize_t i{i}_s[{ndim + 1}];\n    fused_strides(i{i}_s, a_i{i});")

    def _write_elemwise(self, reference: int, step: Step) -> None:
        """Write code that computes and checks the shape of an elementwise step."""
        ndim = self.graph.count_dimensions(reference)
        for number, argument in enumerate(step.arguments):
            pattern = self.graph.get_pattern(argument)
            mask = sum(1 << k for k, broadcast in enumerate(pattern) if not broadcast)
            # Check a repeated argument once, as GpuElemwise does.
            if mask and argument not in step.arguments[:number]:
                shape = self._format_shape(argument)
                self._add_check(f"fused_broadcast(s{reference}, {shape}, {mask}, {ndim}, {number})")

    def _write_join(self, reference: int, step: Step) -> None:
        """Write code that computes and checks the shape of a join."""
        ndim = self.graph.count_dimensions(reference)
        axis = self.graph.get_axis(step, ndim)
        begin = "0"
        for number, array in enumerate(step.arguments[1:]):
            shape = self._format_shape(array)
            if number == 0:
                self._add(f"memcpy(s{reference}, {shape}, {ndim} * sizeof(size_t));")
            else:
                self._add_check(f"fused_join(s{reference}, {shape}, {ndim}, {axis})")
            end = f"j{reference}_{number}"
            self._add(f"ssize_t {end} = {begin} + {shape}[{axis}];")
            begin = end
        self._add(f"s{reference}[{axis}] = {begin};")

    def _write_increment(self, reference: int, step: Step) -> None:
        """Write code that computes and checks the shape and the slices of an increment."""
        array, increment, *numbers = step.arguments
        ndim = self.graph.count_dimensions(reference)
        self._add(f"memcpy(s{reference}, {self._format_shape(array)}, {ndim} * sizeof(size_t));")
        bounds = dict(iterate_bounds(step.op, ndim))
        lengths = []
        for axis in range(ndim):
            length = f"s{reference}[{axis}]"
            if axis not in bounds:
                lengths.append(length)
                continue
            begin, end, size = (f"{letter}{reference}_{axis}" for letter in "bem")
            self._add(f"ssize_t {size} = {length};")
            entry = bounds[axis]
            if isinstance(entry, slice):
                first, last = (
                    None if bound is None else self._format_number(numbers.pop(0))
                    for bound in (entry.start, entry.stop)
                )
                self._add(f"ssize_t {begin} = {first or 0}, {end} = {last or size};")
                self._add(f"fused_slice({size}, &{begin}, &{end});")
                lengths.append(f"(size_t)({end} - {begin})")
            else:
                self._add(f"ssize_t {begin} = {self._format_number(numbers.pop(0))}, {end};")
                self._add_check(f"fused_index({size}, &{begin}, &{end})")
        self._add(f"size_t t{reference}[] = {{{', '.join([*lengths, '1'])}}};")
        shape = self._format_shape(increment)
        self._add_check(f"fused_increment({shape}, t{reference}, {len(lengths)})")

    def _write_results(self) -> None:
        """Write the comparison of the shapes in each domain, and the allocation of the results.

        The C variable `together` is 1 if all results of each domain have the same shape.
        """
        results = self.graph.program.results
        self._add("int together = 1;")
        for number, (first, *others) in enumerate(self.graph.domains):
            ndim = self.graph.count_dimensions(results[first])
            self._add(f"const size_t *d{number} = s{results[first]};")
            self._add(f"size_t n{number} = fused_size(d{number}, {ndim}), flat{number} = 0;")
            for position in others:
                shape = f"s{results[position]}"
                self._add(f"together = together && fused_equal(d{number}, {shape}, {ndim});")
        for position, reference in enumerate(results):
            ndim, output = self.graph.count_dimensions(reference), self.outputs[position]
            memory = f"a_i{self.inplace[position]}" if position in self.inplace else "NULL"
            typecode = self.graph.variables[reference].type.typecode
            self._add_check(
                f"fused_output(&{output}, {memory}, together, {ndim}, s{reference}, {typecode},"
                f" {self.context})"
            )
            self._add(f"PyGpuArrayObject *a_o{position} = {output};")
            self._add(f"ssize_t o{position}_s[{ndim + 1}];")
            self._add(f"fused_strides(o{position}_s, a_o{position});")

    def _write_flat(self, number: int, positions: Sequence[int]) -> None:
        """Write code that indexes a domain's arrays by one number if all arrays are contiguous."""
        ndim = self.graph.count_dimensions(self.graph.program.results[positions[0]])
        if arrays := self._find_flat(number, positions, ndim):
            calls = (f"fused_flat(a_{name}, d{number})" for name in arrays)
            self._add(f"if (together && {' && '.join(calls)}) {{\n        flat{number} = 1;")
            for name in arrays:
                self._add(f"    {name}_s[{ndim - 1}] = GpuArray_ITEMSIZE(&a_{name}->ga);")
            self._add("}")

    def _find_flat(self, number: int, positions: Sequence[int], ndim: int) -> list[str]:
        """Return the C names of a domain's arrays if one number can index them, otherwise []."""
        if ndim < 2 or number in self.kernel.indexed:
            return []
        identity = tuple(f"x{number}_{axis}" for axis in range(ndim))
        arrays = [f"o{position}" for position in positions]
        for i, reads in self.kernel.reads.items():
            index_tuples = {
                indices for domain, indices in reads if domain == number and set(indices) != {"0"}
            }
            if not index_tuples - {()}:
                continue
            if index_tuples != {identity} or {domain for domain, _ in reads} != {number}:
                return []
            arrays.append(f"i{i}")
        return arrays

    def _write_launches(self) -> None:
        """Write one launch, or one launch per result if shapes differ within a domain."""
        self._add("if (together)\n        return launch(-1);")
        domains = self.graph.domains
        self._add(" = ".join(f"n{number}" for number in range(len(domains))) + " = 0;")
        for number, positions in enumerate(domains):
            for position in positions:
                reference = self.graph.program.results[position]
                ndim = self.graph.count_dimensions(reference)
                self._add(f"d{number} = s{reference};")
                self._add(f"n{number} = fused_size(d{number}, {ndim});")
                self._add_check(f"launch({position})")
            self._add(f"n{number} = 0;")
