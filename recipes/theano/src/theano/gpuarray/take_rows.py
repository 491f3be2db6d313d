"""GpuTakeRows: select rows of a GPU array by a vector of indices.

GpuTakeRows loads its kernel once. Theano's own op calls GpuArray_take1, which compiles and loads a
kernel in each call. This takes longer than the copy of the rows.

Kernels report indices out of range by an error flag on the device. The host must wait for the
kernel to read the flag. If the indices are on the host too, GpuTakeCheckedRows and
GpuIncrementCheckedRows check them there, and do not read the flag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from theano.gof.graph import Apply
from theano.gpuarray.basic_ops import GpuKernelBase, Kernel, gpuarray_helper_inc_dir
from theano.gpuarray.c_types import in_kernels
from theano.gpuarray.subtensor import GpuAdvancedIncSubtensor1_dev20, GpuAdvancedSubtensor1

if TYPE_CHECKING:
    from theano.gof.graph import Variable

KERNEL = """#include "cluda.h"
KERNEL void take(const ga_size n, const ga_size rows, const ga_ssize stride0, {dimensions}
                 GLOBAL_MEM {word} *to, const ga_size to_offset,
                 GLOBAL_MEM char *from, const ga_size from_offset,
                 GLOBAL_MEM ga_long *indices, const ga_size indices_offset,
                 GLOBAL_MEM ga_int *error) {{
    to = (GLOBAL_MEM {word} *)((GLOBAL_MEM char *)to + to_offset);
    indices = (GLOBAL_MEM ga_long *)((GLOBAL_MEM char *)indices + indices_offset);
    for (ga_size i = (ga_size)GID_0 * LDIM_0 + LID_0; i < n; i += (ga_size)GDIM_0 * LDIM_0) {{
        GLOBAL_MEM char *element = from + from_offset;
        ga_size remainder = i;
        {inner}
        ga_long row = indices[remainder];
        if (row < 0)
            row += (ga_long)rows;
        if (row < 0 || row >= (ga_long)rows)
            *error = 1;
        else
            to[i] = *(GLOBAL_MEM {word} *)(element + row * stride0);
    }}
}}
"""


class GpuTakeRows(GpuKernelBase, GpuAdvancedSubtensor1):
    """Select rows of the first input; the second input, a vector of int64, has their indices.

    GpuAdvancedSubtensor1 itself cannot derive from GpuKernelBase: Python would reject a program's
    class with the bases (GpuKernelBase, GpuAdvancedSubtensor1). Therefore this op is a subclass.
    """

    # C code that waits for the kernel and reads its error flag.
    READ_FLAG = """
    if (status == GA_NO_ERROR)
        status = gpudata_read(&error, errors, 0, sizeof error);
"""

    def c_support_code(self) -> str:
        return ""

    def c_headers(self) -> list[str]:
        return ["<numpy_compat.h>", "<gpuarray/types.h>", "<gpuarray_helper.h>"]

    def c_header_dirs(self) -> list[str]:
        return [gpuarray_helper_inc_dir()]

    def c_code_cache_version(self) -> tuple[int, ...]:
        return (2,)

    def gpu_kernels(self, node: Apply, name: str) -> list[Kernel]:
        """Return the kernel, which copies the elements of the rows."""
        from pygpu.gpuarray import SIZE, SSIZE, GpuArray  # noqa: PLC0415 (comes with devices)

        x = node.inputs[0]
        word = f"uint{8 * np.dtype(x.dtype).itemsize}"
        inner = range(1, x.ndim)
        code = KERNEL.format(
            word=in_kernels(f"npy_{word}"),
            dimensions=" ".join(f"const ga_size dim{k}, const ga_ssize stride{k}," for k in inner),
            inner=" ".join(
                f"element += (ga_ssize)(remainder % dim{k}) * stride{k}; remainder /= dim{k};"
                for k in reversed(inner)
            ),
        )
        params = [SIZE, *[SIZE, SSIZE] * x.ndim, *[GpuArray, SIZE] * 3, GpuArray]
        flags = Kernel.get_flags(word)
        # Modules that are compiled in one run of g++ need different names.
        names = {"objvar": f"take_{name}", "codevar": f"kcode_take_{name}"}
        return [Kernel(code=code, name="take", params=params, flags=flags, **names)]

    def c_code(
        self, node: Apply, name: str, inputs: list[str], outputs: list[str], sub: dict[str, Any]
    ) -> str:
        """Return C code that allocates the output and calls the kernel."""
        (x, indices), (out,) = inputs, outputs
        context, fail = sub["params"], sub["fail"]
        ndim = node.inputs[0].ndim
        strides = ", ".join(
            f"PyGpuArray_DIM({x}, {k}), PyGpuArray_STRIDE({x}, {k})" for k in range(ndim)
        )
        arrays = ", ".join(f"{name}->ga.data, {name}->ga.offset" for name in (out, x, indices))
        return f"""
size_t shape[{ndim}], n;
int error = 0, status;
gpudata *errors;
memcpy(shape, PyGpuArray_DIMS({x}), sizeof shape);
shape[0] = PyGpuArray_DIM({indices}, 0);
if ({out} != NULL && !GpuArray_IS_C_CONTIGUOUS(&{out}->ga))
    Py_CLEAR({out});
if (theano_prep_output(&{out}, {ndim}, shape, {x}->ga.typecode, GA_C_ORDER, {context})) {{
    {fail}
}}
n = PyGpuArray_SIZE({out});
if (n > 0) {{
    status = gpudata_property({out}->ga.data, GA_CTX_PROP_ERRBUF, &errors);
    if (status == GA_NO_ERROR)
        status = take_scall(1, &n, 0, n, {strides}, {arrays}, errors);
    {self.READ_FLAG}
    if (status != GA_NO_ERROR) {{
        PyErr_Format(PyExc_RuntimeError, "the rows could not be copied: %s",
                     gpucontext_error({context}->ctx, status));
        {fail}
    }}
    if (error) {{
        error = 0;
        gpudata_write(errors, 0, &error, sizeof error);
        PyErr_SetString(PyExc_IndexError, "Index out of bounds.");
        {fail}
    }}
}}
"""


class CheckedRows(GpuKernelBase):
    """Base class of ops on rows of the first input that check the indices on the host.

    A node has one input more than a node of the other base class: a copy of the indices on the
    host, a vector of int64.
    """

    def make_node(self, *inputs: Variable) -> Apply:
        """Return a node; the last input is the copy of the indices on the host."""
        *others, on_host = inputs
        node = super().make_node(*others)
        return Apply(self, [*node.inputs, on_host], [node.outputs[0].type()])

    def c_code_cache_version(self) -> tuple[int, ...]:
        return (*super().c_code_cache_version(), 1)

    def c_code(
        self, node: Apply, name: str, inputs: list[str], outputs: list[str], sub: dict[str, Any]
    ) -> str:
        """Return C code that raises IndexError for a wrong index, and calls the kernel."""
        *others, on_host = inputs
        return f"""
for (npy_intp k = 0; k < PyArray_DIM({on_host}, 0); k++) {{
    npy_int64 index = *(npy_int64 *)PyArray_GETPTR1({on_host}, k);
    npy_int64 rows = (npy_int64)PyGpuArray_DIM({inputs[0]}, 0);
    if (index < -rows || index >= rows) {{
        PyErr_SetString(PyExc_IndexError, "Index out of bounds.");
        {sub["fail"]}
    }}
}}
 {{ {super().c_code(node, name, others, outputs, sub)} }}"""

    def infer_shape(self, node: Apply, shapes: list[Any]) -> Any:
        """Return the shape of the result; the copy of the indices does not affect it."""
        return super().infer_shape(node, shapes[:-1])


class GpuTakeCheckedRows(CheckedRows, GpuTakeRows):
    """Select rows by indices on the device, after a check of equal indices on the host."""

    READ_FLAG = ""


class GpuIncrementCheckedRows(CheckedRows, GpuAdvancedIncSubtensor1_dev20):
    """Increment or set rows of a matrix, after a check of equal indices on the host."""

    # C code of the base class that waits for the kernel and reads its error flag. This class
    # removes it.
    READ = "err = gpudata_read(&kerr, errbuf, 0, sizeof(int));"

    def c_support_code_struct(self, node: Apply, name: str) -> str:
        code: str = super().c_support_code_struct(node, name)
        assert self.READ in code
        return code.replace(self.READ, "")
