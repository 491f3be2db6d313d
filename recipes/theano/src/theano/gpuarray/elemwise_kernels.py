"""Compilation of the elementwise kernels that libgpuarray writes: fewer kernels, and in threads.

GpuElemwise_new is a function of libgpuarray. It compiles a kernel for contiguous arrays of equal
shapes. It also compiles two kernels, for offsets of 32 and of 64 bits, for each number of axes up
to its parameter nd, although most calls need none of these kernels. If nd is 0, libgpuarray
compiles such a kernel in the first call that needs it. The kernels are the same.

The functions of this module write the kernels that the first call of an op probably needs into the
op's module. early_kernels.py compiles them in threads. If libgpuarray writes another kernel, NVRTC
compiles it when libgpuarray requests it. So the results do not depend on the written kernels.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from theano.gpuarray.c_types import NAMES
from theano.gpuarray.elemwise import GpuElemwise
from theano.gpuarray.subtensor import GpuAdvancedIncSubtensor1, GpuIncSubtensor
from theano.gpuarray.type import GpuArrayType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from theano.gof.graph import Apply

# The version of the C code that this module adds. Raise it if the code changes.
VERSION = 1
# The definition of a macro that passes 0 for GpuElemwise_new's parameter nd.
DEFINITION = """#define GpuElemwise_new(context, support, code, n, arguments, nd, flags) \\
    GpuElemwise_new(context, support, code, n, arguments, 0, flags)"""
# The lines of both kernels that compute the index of a thread's first element.
INDEX = """const {type} idx = LDIM_0 * GID_0 + LID_0;
const {type} numThreads = LDIM_0 * GDIM_0;
{type} i;
"""


class Argument:
    """An array that a kernel reads or writes.

    Attributes:
        name: the name of the element in the code of the scalar op.
        kind: the type of the element in libgpuarray's C code.
        is_read: whether the kernel reads the array.
        is_written: whether the kernel writes the array.
        broadcastable: the broadcastable pattern.
    """

    def __init__(
        self, name: str, dtype: str, broadcastable: tuple[bool, ...], *, is_input: bool
    ) -> None:
        self.name = name
        self.kind = NAMES[f"npy_{dtype}"]
        self.broadcastable = broadcastable
        self.is_read, self.is_written = is_input, not is_input


def list_arguments(node: Apply) -> list[Argument]:
    """Return the arrays of a GpuElemwise in the order of the kernel's parameters."""
    op = node.op
    input_names, output_names = op._get_vnames(node)
    arguments = [
        Argument(name, variable.type.dtype, variable.type.broadcastable, is_input=True)
        for name, variable in zip(input_names, node.inputs, strict=True)
    ]
    for number, variable in enumerate(node.outputs):
        if number in op.inplace_pattern:
            arguments[op.inplace_pattern[number]].is_written = True
        else:
            kind = variable.type
            arguments.append(
                Argument(output_names[number], kind.dtype, kind.broadcastable, is_input=False)
            )
    return arguments


def count_axes(arguments: Sequence[Argument]) -> int:
    """Return the number of axes of the arrays after libgpuarray has collapsed axes.

    Assume that the arrays are contiguous, and that only lengths that are declared broadcastable
    are 1. libgpuarray removes axes whose length is 1, and collapses two axes if each array is
    broadcast along both axes or along none.
    """
    axes = zip(*(argument.broadcastable for argument in arguments), strict=True)
    return len([pattern for pattern, _ in itertools.groupby(a for a in axes if not all(a))])


def join_lines(text: str) -> str:
    """Return a text as the C compiler reads theano.gof.utils' as_C_string_const of the text."""
    return "".join(f"{line}\n" for line in text.split("\n"))


def write_contiguous(arguments: Sequence[Argument], support: str, code: str) -> str:
    """Return the kernel for contiguous arrays of equal shapes."""
    heads = [f"GLOBAL_MEM {a.kind} *{a.name}_p,  const ga_size {a.name}_offset" for a in arguments]
    offsets = [
        f"tmp = (GLOBAL_MEM char *){a.name}_p;tmp += {a.name}_offset; "
        f"{a.name}_p = (GLOBAL_MEM {a.kind} *)tmp;"
        for a in arguments
    ]
    loads = [
        f"{a.kind} {a.name};\n" + (f"{a.name} = {a.name}_p[i];\n" if a.is_read else "")
        for a in arguments
    ]
    stores = [f"{a.name}_p[i] = {a.name};\n" for a in arguments if a.is_written]
    return (
        f'#include "cluda.h"\n{support}\nKERNEL void elem(const ga_size n, {", ".join(heads)}) {{\n'
        f"{INDEX.format(type='ga_size')}GLOBAL_MEM char *tmp;\n\n{''.join(offsets)}"
        f"for (i = idx; i < n; i += numThreads) {{\n{''.join(loads)}{code};\n"
        f"{''.join(stores)}}}\n}}\n"
    )


def write_strided(arguments: Sequence[Argument], ndim: int, support: str, code: str) -> str:
    """Return the kernel for arrays with `ndim` axes, whose offsets fit in 32 bits."""
    heads = [f"const ga_size dim{axis}" for axis in range(ndim)]
    for a in arguments:
        heads.append(f"GLOBAL_MEM {a.kind} *{a.name}_data, const ga_size {a.name}_offset")
        heads += [f"const ga_ssize {a.name}_str_{axis}" for axis in range(ndim)]
    offsets = [f"ga_uint {a.name}_p = {a.name}_offset;\n" for a in arguments]
    for axis in reversed(range(ndim)):
        offsets.append(
            f"pos = ii % (ga_uint)dim{axis};\nii = ii / (ga_uint)dim{axis};\n"
            if axis
            else "pos = ii;\n"
        )
        offsets += [f"{a.name}_p += pos * (ga_int){a.name}_str_{axis};\n" for a in arguments]
    elements = {
        a: f"*(GLOBAL_MEM {a.kind} *)(((GLOBAL_MEM char *){a.name}_data) + {a.name}_p)"
        for a in arguments
    }
    loads = [
        f"{a.kind} {a.name};" + (f"{a.name} = {element};\n" if a.is_read else "")
        for a, element in elements.items()
    ]
    stores = [f"{element} = {a.name};\n" for a, element in elements.items() if a.is_written]
    return (
        f'#include "cluda.h"\n{support}\nKERNEL void elem(const ga_size n, {", ".join(heads)}) {{\n'
        f"{INDEX.format(type='ga_uint')}for(i = idx; i < n; i += numThreads) {{\n"
        f"ga_uint ii = i;\nga_uint pos;\n{''.join(offsets)}{''.join(loads)}{code};\n"
        f"{''.join(stores)}}}\n}}\n"
    )


def write_elemwise(node: Apply) -> list[str]:
    """Return the kernels of a GpuElemwise; [] for types that libgpuarray converts or rejects."""
    if not is_supported(node):
        return []
    arguments = list_arguments(node)
    support, code = map(join_lines, node.op._generate_op_string(node))
    kernels = [write_contiguous(arguments, support, code)]
    if len({argument.broadcastable for argument in arguments}) > 1:
        kernels.append(write_strided(arguments, count_axes(arguments), support, code))
    return kernels


def write_increment(node: Apply) -> list[str]:
    """Return the kernel by which an op adds its second input to contiguous parts of its first."""
    if not is_supported(node):
        return []
    arguments = [
        Argument(name, variable.type.dtype, (), is_input=True)
        for name, variable in zip("ab", node.inputs, strict=False)
    ]
    arguments[0].is_written = True
    return [write_contiguous(arguments, "", "a += b")]


def is_supported(node: Apply) -> bool:
    """Return whether libgpuarray uses the arrays' types in kernels without a conversion."""
    variables = (*node.inputs, *node.outputs)
    dtypes = {v.type.dtype for v in variables if isinstance(v.type, GpuArrayType)}
    return all(f"npy_{dtype}" in NAMES and dtype != "float16" for dtype in dtypes)


def change_class(op_class: Any, write: Callable[[Apply], list[str]]) -> None:
    """Let the modules of an op's class compile few kernels, and contain the kernels' sources.

    Args:
        op_class: the class. Its C code calls GpuElemwise_new in c_init_code_struct.
        write: a function that returns the kernels that a node probably needs in its first call.
    """
    initialize, get_version = op_class.c_init_code_struct, op_class.c_code_cache_version

    def c_init_code_struct(self: Any, node: Apply, name: str, sub: dict[str, str]) -> str:
        code = initialize(self, node, name, sub)
        return f"\n{DEFINITION}\n{code}\n#undef GpuElemwise_new\n"

    def c_support_code_apply(_self: Any, node: Apply, name: str) -> str:
        return declare_kernels(write(node), name)

    def c_code_cache_version(self: Any) -> tuple[Any, ...]:
        version = get_version(self)
        return (*version, VERSION) if version else ()

    op_class.c_init_code_struct = c_init_code_struct
    op_class.c_support_code_apply = c_support_code_apply
    op_class.c_code_cache_version = c_code_cache_version


def declare_kernels(kernels: Sequence[str], name: str) -> str:
    """Return C declarations of kernels' sources, in the form that early_kernels.SOURCE matches.

    The module does not use the variables.

    Args:
        kernels: the sources.
        name: a name that is unique in the module.
    """
    declarations = []
    for number, kernel in enumerate(kernels):
        text = kernel.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        variable = f"elem_{number}_{name}_unsigned"
        declarations.append(f'[[maybe_unused]] static const char *{variable} = "{text}";\n')
    return "".join(declarations)


change_class(GpuElemwise, write_elemwise)
change_class(GpuIncSubtensor, write_increment)
change_class(GpuAdvancedIncSubtensor1, write_increment)
