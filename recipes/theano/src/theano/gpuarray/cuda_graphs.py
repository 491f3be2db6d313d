"""Capture of kernel launches as a CUDA graph, by calls of NVIDIA's driver through ctypes.

One call of the driver launches all kernels of a CUDA graph. The kernels use the same addresses as
in the capture. Therefore the memory at these addresses must not be freed as long as the graph
exists. During a capture, libgpuarray allocates from a memory pool that only CUDA graphs use.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_char, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

# The offsets, in bytes, of fields of libgpuarray's cuda_context: the stream of kernels, the stream
# of copies, the list of free blocks, the number of bytes that the context has allocated, and their
# limit. The limit is 0 if freed memory returns to the driver.
STREAM, COPY_STREAM, FREE_BLOCKS, ALLOCATED, LIMIT = 144, 152, 160, 168, 176

# Constants of cuda.h.
CAPTURE_MODE_RELAXED = 2
AUTO_FREE_ON_LAUNCH = 1
DEVICE_MEMORY = 2
KERNEL_NODE, COPY_NODE, MEMSET_NODE, EMPTY_NODE, ALLOCATION_NODE, FREE_NODE = 0, 1, 2, 5, 10, 11
# The nodes that never use the host.
DEVICE_NODES = (KERNEL_NODE, MEMSET_NODE, EMPTY_NODE, ALLOCATION_NODE, FREE_NODE)
# In bytes: the size of CUDA_MEMCPY3D, and the offsets of srcMemoryType and dstMemoryType in it.
COPY_SIZE, COPY_FROM, COPY_TO = 200, 32, 120


class CaptureError(RuntimeError):
    """Raised if work cannot be captured as a CUDA graph."""


class Device:
    """The stream and the free memory of a context of libgpuarray.

    Attributes:
        max_graph_bytes: the limit of graph_bytes. If graph_bytes has reached the limit, the caller
            must not start a capture. The last capture may exceed the limit.
        graph_bytes: the number of bytes that captures have allocated.
    """

    def __init__(self, context: Any, max_graph_bytes: int) -> None:
        """Look up the functions of the driver, and check the layout of the context.

        Raises:
            CaptureError: the driver is too old, or the device or a flag is not suitable.
        """
        if context.kind != b"cuda":
            raise CaptureError("the device is not a CUDA device")
        self.max_graph_bytes, self.graph_bytes = max_graph_bytes, 0
        self._context = context
        # The list of the free blocks of the graphs' memory pool.
        self._pool = 0
        self._is_pool_in_use = False
        # Arrays of the pool to which other objects still referred when `release` removed them.
        self._in_use: list[Any] = []
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
            self._begin = self._driver.cuStreamBeginCapture_v2
            self._instantiate = self._driver.cuGraphInstantiateWithFlags
            gpuarray = ctypes.CDLL("libgpuarray.so.3")
        except (AttributeError, OSError) as error:
            raise CaptureError(f"CUDA graphs need a newer driver: {error}") from error
        gpuarray.gpuarray_get_extension.restype = c_void_p
        prototype = ctypes.CFUNCTYPE(None, c_void_p)
        self._enter = prototype(gpuarray.gpuarray_get_extension(b"cuda_enter"))
        self._exit = prototype(gpuarray.gpuarray_get_extension(b"cuda_exit"))
        get_stream = ctypes.CFUNCTYPE(c_void_p, c_void_p)(
            gpuarray.gpuarray_get_extension(b"cuda_get_stream")
        )
        self._stream = c_void_p(get_stream(context.ptr))
        streams = [self._field(offset).value for offset in (STREAM, COPY_STREAM)]
        if not self._stream or streams != [self._stream.value] * 2:
            raise CaptureError("CUDA graphs need gpuarray.single_stream=True and libgpuarray 0.7.6")
        if not self._field(LIMIT).value:
            raise CaptureError("CUDA graphs need gpuarray.preallocate >= 0")
        self._free_blocks = self._field(FREE_BLOCKS)
        self._allocated = self._field(ALLOCATED)

    def _field(self, offset: int) -> c_uint64:
        """Return a ctypes object that reads and writes a field of the context."""
        return c_uint64.from_address(self._context.ptr + offset)

    @contextlib.contextmanager
    def _use_pool(self) -> Iterator[None]:
        """Let libgpuarray allocate arrays from the graphs' memory pool, and free arrays to it.

        In the meantime, no other thread runs Python code, unless the caller releases the GIL.
        """
        if self._is_pool_in_use:
            yield
            return
        self._is_pool_in_use, interval = True, sys.getswitchinterval()
        sys.setswitchinterval(1000)
        blocks, self._free_blocks.value = self._free_blocks.value, self._pool
        try:
            yield
        finally:
            self._pool, self._free_blocks.value = self._free_blocks.value, blocks
            sys.setswitchinterval(interval)
            self._is_pool_in_use = False

    def capture(self, run: Callable[[], None]) -> CudaGraph:
        """Capture the work that a function submits to the stream. The work is not executed.

        Args:
            run: the function. When it has returned, all arrays that it allocated must be freed,
                except arrays that are later passed to `release`.

        Raises:
            CaptureError: the work needs the host, so that a graph cannot repeat it.
            Exception: `run` failed.
        """
        graph = c_void_p()
        allocated = self._allocated.value
        with self._use_pool():
            self._enter(self._context.ptr)
            try:
                self._check(self._begin(self._stream, CAPTURE_MODE_RELAXED))
                try:
                    run()
                finally:
                    status = self._driver.cuStreamEndCapture(self._stream, byref(graph))
                self._check(status)
                self._check_nodes(graph)
                return CudaGraph(self, self._make_executable(graph))
            finally:
                if graph:
                    self._driver.cuGraphDestroy(graph)
                self._exit(self._context.ptr)
                self.graph_bytes += self._allocated.value - allocated

    def release(self, arrays: list[Any]) -> None:
        """Remove arrays of the graphs' memory pool from a list, and free them to the pool.

        If they were freed outside of this method, libgpuarray would reuse their memory for other
        arrays, which graphs would overwrite. An array to which other objects refer is never freed.
        """
        with self._use_pool():
            while arrays:
                array = arrays.pop()
                # Two references always exist: the variable and the argument of getrefcount.
                if sys.getrefcount(array) > 2:
                    self._in_use.append(array)
                del array

    def _check(self, status: int) -> None:
        """Check the result of a function of the driver.

        Raises:
            CaptureError: the function failed.
        """
        if status:
            raise CaptureError(f"the work cannot be captured: error {status} of the driver")

    def _check_nodes(self, graph: c_void_p) -> None:
        """Check that a graph neither copies from or to the host's memory nor calls the host.

        Raises:
            CaptureError: the graph has no nodes, or a node uses the host.
        """
        count, kind = c_size_t(), c_int()
        self._check(self._driver.cuGraphGetNodes(graph, None, byref(count)))
        nodes = (c_void_p * count.value)()
        self._check(self._driver.cuGraphGetNodes(graph, nodes, byref(count)))
        if not nodes:
            raise CaptureError("the work contains no kernels")
        for address in nodes:
            node = c_void_p(address)
            self._check(self._driver.cuGraphNodeGetType(node, byref(kind)))
            if kind.value == COPY_NODE:
                copy = (c_char * COPY_SIZE)()
                self._check(self._driver.cuGraphMemcpyNodeGetParams(node, copy))
                for offset in (COPY_FROM, COPY_TO):
                    if c_int.from_buffer(copy, offset).value != DEVICE_MEMORY:
                        raise CaptureError("the work copies from or to the host")
            elif kind.value not in DEVICE_NODES:
                raise CaptureError(f"the work contains a node of the kind {kind.value}")

    def _make_executable(self, graph: c_void_p) -> c_void_p:
        """Return the executable form of a graph."""
        executable = c_void_p()
        flags = ctypes.c_ulonglong(AUTO_FREE_ON_LAUNCH)
        self._check(self._instantiate(byref(executable), graph, flags))
        return executable

    def launch(self, executable: c_void_p) -> None:
        """Launch an executable graph on the stream.

        Raises:
            RuntimeError: the driver failed.
        """
        self._enter(self._context.ptr)
        status = self._driver.cuGraphLaunch(executable, self._stream)
        self._exit(self._context.ptr)
        if status:
            raise RuntimeError(f"a CUDA graph could not be launched: error {status} of the driver")

    def destroy(self, executable: c_void_p) -> None:
        """Destroy an executable graph."""
        self._driver.cuGraphExecDestroy(executable)


class CudaGraph:
    """An executable CUDA graph, which is destroyed together with this object."""

    def __init__(self, device: Device, executable: c_void_p) -> None:
        self._device, self._executable = device, executable

    def launch(self) -> None:
        """Repeat the captured work, after all earlier work of the stream.

        Raises:
            RuntimeError: the driver failed.
        """
        self._device.launch(self._executable)

    def __del__(self) -> None:
        """Destroy the graph. At the interpreter's exit, the device may be gone: do nothing."""
        if not sys.is_finalizing():
            self._device.destroy(self._executable)
