"""Replay of a function's GPU nodes by CUDA graphs.

The host needs more time to launch a small kernel than a GPU needs to run it. ReplayVM divides the
nodes of a function into segments, which run in order. Two kinds alternate:

- A host segment contains transfers from and to the host, and all other nodes that must run in each
  call.
- A device segment contains nodes that only launch kernels, and calculations of shapes.

In the first calls, all nodes run as usual. Then ReplayVM captures each device segment as a CUDA
graph. The key of a graph consists of shapes and addresses of the segment's inputs, and of numbers
on the host. A later call with the same key launches the graph.

A capture launches the graph once, runs the nodes of the segment as usual, and compares the results.
If the results differ, or if a node cannot be captured, the segment always runs as usual. Other
segments of the function may still use graphs.
"""

from __future__ import annotations

import logging
import math
import operator
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import theano
from theano import tensor
from theano.compile.ops import DeepCopyOp, Rebroadcast, Shape, Shape_i
from theano.gof import linker_parts
from theano.gof.graph import Apply, Constant, Variable
from theano.gof.memory_use import MemoryUse
from theano.gpuarray import (
    basic_ops,
    blas,
    dnn,
    elemwise,
    nnet,
    pool,
    reduction,
    rng_mrg,
    subtensor,
)
from theano.gpuarray.cuda_graphs import CaptureError, CudaGraph, Device
from theano.gpuarray.fused_loops import GpuFusedLoops
from theano.gpuarray.host_round_trips import is_integer
from theano.gpuarray.take_rows import GpuIncrementCheckedRows, GpuTakeCheckedRows
from theano.gpuarray.type import GpuArrayType, get_context
from theano.scan_module.scan_op import Scan

logger = logging.getLogger(__name__)

# The number of first calls in which all nodes run as usual. These calls load all kernels.
FIRST_CALLS = 2
# The number of runs of a segment with one key, after the first calls and before the run that
# captures the segment.
CALLS_BEFORE_CAPTURE = 1
# A function without a Scan uses graphs only if at least this number of nodes compute new arrays on
# the device. Computing a key takes the host about as long as MIN_NODES launches.
MIN_NODES = 16
# The largest number of graphs of a segment.
MAX_GRAPHS = 8
# A function stops using graphs if its device segments have run more than MAX_MISSES times without a
# graph, and more often without a graph than with a graph.
MAX_MISSES = 64
# The largest size, in bytes, of an array on the host that may be a part of a key.
MAX_KEY_BYTES = 4096

# Classes of ops whose nodes only launch kernels. The launches may depend on numbers on the host,
# which are parts of the key.
DEVICE_OPS: tuple[type, ...] = (
    *(basic_ops.GpuAlloc, basic_ops.GpuAllocEmpty, basic_ops.GpuContiguous, basic_ops.GpuReshape),
    *(basic_ops.GpuJoin, basic_ops.GpuSplit, basic_ops.GpuEye, basic_ops.GpuTri),
    *(blas.GpuDot22, blas.GpuGemm, blas.GpuGemv, blas.GpuGer, blas.GpuGemmBatch),
    *(blas.GpuCorrMM, blas.GpuCorrMM_gradInputs, blas.GpuCorrMM_gradWeights),
    *(elemwise.GpuElemwise, elemwise.GpuDimShuffle, elemwise.GpuCAReduceCuda, GpuFusedLoops),
    *(nnet.GpuSoftmax, nnet.GpuSoftmaxWithBias, nnet.GpuCrossentropySoftmax1HotWithBiasDx),
    *(nnet.GpuCrossentropySoftmaxArgmax1HotWithBias, reduction.GpuMaxAndArgmax),
    *(pool.GpuPool, pool.GpuMaxPoolGrad, pool.GpuAveragePoolGrad, rng_mrg.GPUA_mrg_uniform),
    *(subtensor.GpuSubtensor, subtensor.GpuIncSubtensor),
    *(subtensor.GpuAdvancedIncSubtensor1, GpuTakeCheckedRows, GpuIncrementCheckedRows),
    *(dnn.GpuDnnConv, dnn.GpuDnnConvGradI, dnn.GpuDnnConvGradW, dnn.GpuDnnReduction),
    *(dnn.GpuDnnPool, dnn.GpuDnnPoolGrad, dnn.GpuDnnSoftmax, dnn.GpuDnnSoftmaxGrad),
    *(dnn.GpuDnnBatchNorm, dnn.GpuDnnBatchNormGrad, dnn.GpuDnnBatchNormInference),
    # The outputs of these ops are cuDNN's descriptors, which depend only on shapes.
    *(dnn.GpuDnnConvDesc, dnn.GpuDnnPoolDesc),
)
# Classes of ops that may calculate shapes and indices on the host (is_integer_node).
INTEGER_OPS: tuple[type, ...] = (
    *(Shape_i, Rebroadcast, tensor.Elemwise, tensor.DimShuffle, tensor.Join, tensor.Reshape),
    *(
        tensor.IncSubtensor,
        tensor.opt.MakeVector,
        tensor.ScalarFromTensor,
        tensor.TensorFromScalar,
        tensor.Subtensor,
    ),
    *(tensor.opt.Assert, theano.scalar.ScalarOp),
)
# Maps a class of ops that check indices on the host to the position of the indices in their inputs.
CHECKED_INDICES: dict[type, int] = {GpuTakeCheckedRows: 2, GpuIncrementCheckedRows: 3}

# All graphs of a device use the same memory pool. Therefore only one call at a time uses graphs.
_lock = threading.RLock()
_is_running = False
# Maps the name of a context to its Device, or to None if the context cannot use CUDA graphs.
_devices: dict[Any, Device | None] = {}


def find_device(name: Any) -> Device | None:
    """Return the Device of a context, or None if the context cannot use CUDA graphs."""
    if name not in _devices:
        context, limit = get_context(name), theano.config.gpuarray.graph_memory
        try:
            _devices[name] = Device(context, limit << 20 if limit >= 0 else context.total_gmem // 4)
        except CaptureError as error:
            logger.debug("no CUDA graphs: %s", error)
            _devices[name] = None
    return _devices[name]


def holds_integers(variable: Variable) -> bool:
    """Return whether a variable is an integer or a vector of integers on the host."""
    return (
        isinstance(variable.type, (tensor.TensorType, theano.scalar.Scalar))
        and is_integer(variable)
        and getattr(variable, "ndim", 0) <= 1
    )


def is_integer_node(node: Apply) -> bool:
    """Return whether a node calculates integers on the host from integers or from a shape."""
    if isinstance(node.op, (Shape, Shape_i)):
        return isinstance(node.inputs[0].type, GpuArrayType)
    return isinstance(node.op, INTEGER_OPS) and all(map(holds_integers, node.inputs + node.outputs))


def is_device_node(node: Apply) -> bool:
    """Return whether a node only launches kernels, or is a Scan of such nodes."""
    op = node.op
    if isinstance(op, Scan):
        return (
            bool(op.info.get("gpua"))
            and not op.as_while
            and all(is_device_node(n) or is_integer_node(n) for n in op.fn.fn.nodes)
        )
    if isinstance(op, (DeepCopyOp, Rebroadcast, tensor.opt.Assert)):
        # The conditions of an Assert are integers, on which the key of a graph depends.
        return isinstance(node.inputs[0].type, GpuArrayType) and all(
            map(holds_integers, node.inputs[1:])
        )
    return type(op) in DEVICE_OPS


# The storage of a variable: a list whose only element is the variable's value.
Storage = list[Any]


@dataclass
class Graph:
    """A captured graph of a segment.

    Attributes:
        graph: the CUDA graph.
        arrays: the arrays of Segment.arrays that the graph reads.
        copied: the arrays of Segment.copied that the graph reads.
        integers: the first part of the key: the numbers of Segment.integers and the shapes of the
            checked indices.
        results: the arrays to which the graph writes the values of Segment.results.
        owned: the arrays of `results` in the graphs' memory pool. The other results are arrays that
            existed before the capture: updated inputs, and arrays that nodes change in-place.
        n_rows: for each node of Segment.checked, the number of rows of the array that it indexes.
    """

    graph: CudaGraph
    arrays: list[Any]
    copied: list[Any]
    integers: tuple[Any, ...]
    results: list[Any]
    owned: list[Any]
    n_rows: list[int]


@dataclass(eq=False)
class Segment:
    """Nodes that run without interruption: as usual, or together as a captured graph.

    Attributes:
        nodes: the numbers of the nodes.
        on_device: whether the nodes may be captured.
        arrays: the storages of the arrays on the device that the nodes read but do not compute,
            except `copied`. The addresses of these arrays are parts of the key.
        copied: the storages of arrays on the device that other segments compute, at addresses that
            may change. If the address changes, the call copies the array to the array that the
            graph reads.
        views: the storages of `copied` whose arrays share memory with inputs or constants. A
            capture replaces such an array by a copy. Otherwise later calls would overwrite the
            input or constant.
        integers: the storages of numbers on the host that the nodes read.
        checked: the numbers of nodes that check indices on the host, with the storages of the
            indices.
        results: the storages of values that the nodes compute and that later segments or the
            outputs of the function need.
        updates: pairs of storages: of an input of the function, and of its new value. The segment
            copies the new value to the memory of the input.
        written: the storages of the arrays on the device that the segment reads and changes.
        graphs: maps a key to its captured graph.
        last: the graph that was captured or launched last.
        calls: maps a key to the number of runs without a graph.
    """

    nodes: list[int]
    on_device: bool
    arrays: list[Storage] = field(default_factory=list)
    copied: list[Storage] = field(default_factory=list)
    views: list[Storage] = field(default_factory=list)
    integers: list[Storage] = field(default_factory=list)
    checked: list[tuple[int, Storage]] = field(default_factory=list)
    results: list[Storage] = field(default_factory=list)
    updates: list[tuple[Storage, Storage]] = field(default_factory=list)
    written: list[Storage] = field(default_factory=list)
    graphs: dict[Any, Graph] = field(default_factory=dict)
    last: Graph | None = None
    calls: Counter[Any] = field(default_factory=Counter)

    def find_graph(self) -> tuple[Any, Graph | None]:
        """Return the key of the running call, and the graph for this key, or None.

        The launches of kernels depend only on the key: on shapes, addresses, and numbers on the
        host. The key is None in two cases: the inputs are the inputs of the last graph, or a value
        on the host cannot be a part of a key.
        """
        integers = make_integers_key(self.integers)
        if integers is None:
            return None, None
        integers += tuple(indices.shape for _, (indices,) in self.checked)
        if self.last is not None and integers == self.last.integers:
            inputs = (value for (value,) in chain(self.arrays, self.copied))
            if all(map(operator.is_, inputs, chain(self.last.arrays, self.last.copied))):
                return None, self.last
        arrays = ((x.gpudata, x.shape, x.strides) for (x,) in self.arrays)
        copied = ((x.shape, x.strides) for (x,) in self.copied)
        key = (integers, *arrays, *copied)
        return key, self.graphs.get(key)


def find_host_nodes(nodes: Sequence[Apply], outputs: Iterable[Variable]) -> set[Apply]:
    """Return the nodes that must run in each call.

    Args:
        nodes: the nodes of a function in topological order.
        outputs: the outputs of the function.
    """
    # Integers that the caller may change in each call.
    changing: set[Variable] = set()
    # Nodes that index inputs by such integers, to select batches of a data set. Graphs read copies
    # of the batches.
    slices: set[Apply] = set()
    for node in nodes:
        indices = [var for var in node.inputs if holds_integers(var)]
        if any(var in changing or is_free(var) for var in indices):
            if is_integer_node(node):
                changing.update(node.outputs)
            elif type(node.op) is subtensor.GpuSubtensor and is_free(node.inputs[0]):
                slices.add(node)
    host: set[Apply] = set()
    # Values that the host needs in each call. The host also checks indices in each call.
    host_values = set(outputs)
    for node in reversed(nodes):
        if is_device_node(node) and node not in slices:
            if type(node.op) in CHECKED_INDICES:
                host_values.add(node.inputs[CHECKED_INDICES[type(node.op)]])
        elif not is_integer_node(node) or not host_values.isdisjoint(node.outputs):
            host.add(node)
            host_values.update(node.inputs)
    return host


def is_free(variable: Variable) -> bool:
    """Return whether a variable is an input: not a constant, and not computed by a node."""
    return variable.owner is None and not isinstance(variable, Constant)


def divide_nodes(
    nodes: Sequence[Apply], outputs: Iterable[Variable], prerequisites: dict[Apply, Any]
) -> list[Segment]:
    """Divide the nodes of a function into host segments and device segments, alternately.

    Args:
        nodes: the nodes in topological order.
        outputs: the outputs of the function.
        prerequisites: maps a node to the nodes that must run before it, in addition to the nodes
            that compute its inputs.
    """
    host = find_host_nodes(nodes, outputs)
    segments: list[Segment] = []
    done: set[Apply] = set()
    waiting = list(enumerate(nodes))
    while waiting:
        on_device = bool(segments) and not segments[-1].on_device
        segment = Segment([], on_device)
        blocked = []
        for number, node in waiting:
            needed = {var.owner for var in node.inputs if var.owner} | {
                *prerequisites.get(node, ())
            }
            if (node not in host) is on_device and needed <= done:
                segment.nodes.append(number)
                done.add(node)
            else:
                blocked.append((number, node))
        waiting = blocked
        segments.append(segment)
    return segments


class ReplayVM:
    """A virtual machine that replays a function's GPU nodes.

    An attribute that is not listed here is the attribute of Theano's virtual machine, `plain`.

    Attributes:
        n_launched: the number of graph launches, except the launch in each capture.
        n_usual: the number of runs of device segments without a graph, including captures, after
            the first calls.
    """

    def __init__(self, plain: Any, fgraph: Any, updates: dict[Variable, Variable]) -> None:
        """Make a virtual machine for a function.

        Args:
            plain: Theano's virtual machine.
            fgraph: the graph of the function.
            updates: maps an input to the output that replaces it after a call.
        """
        self.plain, self._fgraph = plain, fgraph
        self._updated = {output: variable for variable, output in updates.items()}
        # The number of following calls in which all nodes run as usual.
        self._usual_calls: float = FIRST_CALLS
        self.n_launched = self.n_usual = 0
        self._position: int | None = None
        self._segments: list[Segment] = []
        # The device segments whose graphs the running call has launched.
        self._replayed: set[Segment] = set()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of Theano's virtual machine."""
        return getattr(self.plain, name)

    @property
    def time_thunks(self) -> bool:
        """Whether a profile measures the time of each node. If so, all calls run as usual."""
        return bool(self.plain.time_thunks)

    @time_thunks.setter
    def time_thunks(self, value: bool) -> None:
        self.plain.time_thunks = value

    @property
    def position_of_error(self) -> int:
        """The number of the node that raised an exception in the last call."""
        return self.plain.position_of_error if self._position is None else self._position

    def __call__(self, output_subset: list[int] | None = None) -> Any:
        """Compute the function. Its inputs are in their storages.

        Args:
            output_subset: the numbers of the outputs to compute; all if None.

        Returns:
            The outputs, and the new values of updated inputs.
        """
        global _is_running  # noqa: PLW0603 (the state of all functions)
        self._position = None
        if output_subset is not None:
            return self.plain(output_subset=output_subset)
        if self._usual_calls > 0 or self.time_thunks:
            self._usual_calls -= 1
            return self.plain()
        with _lock:
            if _is_running:
                return self.plain()
            _is_running = True
            try:
                return self._run()
            finally:
                _is_running = False

    def _prepare(self) -> None:
        """Divide the nodes into segments, and find the storages that they use."""
        nodes, outputs, storages = self.plain.nodes, self._fgraph.outputs, self.plain.storage_map
        memory = MemoryUse(nodes)
        self._segments = divide_nodes(nodes, outputs, self._fgraph.orderings())
        self._segment_of = {
            nodes[number]: segment for segment in self._segments for number in segment.nodes
        }
        last_users: dict[Variable, int] = {}
        done: set[Apply] = set()
        for segment in self._segments:
            inner = [nodes[number] for number in segment.nodes]
            done.update(inner)
            for number, node in zip(segment.nodes, inner, strict=True):
                last_users.update(dict.fromkeys((*node.inputs, *node.outputs), number))
            if segment.on_device:
                self._prepare_on_device(segment, inner, memory, done)
        computed = {var: self._segment_of[node] for node in nodes for var in node.outputs}
        self._temporary = [storages[var] for var in computed if var not in outputs]
        # The storages to clear after each node.
        self._cleared: dict[int, list[Storage]] = {}
        for var, number in last_users.items():
            if var in computed and var not in outputs:
                self._cleared.setdefault(number, []).append(storages[var])
        # For each output: its storage, the segments that allocate its memory, and the storage of
        # the input that it updates, or None.
        self._outputs = [
            (
                storages[var],
                {computed[root] for root in memory.find_roots(var) if root in computed},
                storages[self._updated[var]] if var in self._updated else None,
            )
            for var in outputs
        ]
        names = {
            var.type.context_name
            for node in nodes
            for var in (*node.inputs, *node.outputs)
            if isinstance(var.type, GpuArrayType)
        }
        self._device = find_device(names.pop()) if len(names) == 1 else None

    def _prepare_on_device(
        self, segment: Segment, nodes: list[Apply], memory: MemoryUse, done: set[Apply]
    ) -> None:
        """Find the storages that a device segment uses.

        Args:
            segment: the segment.
            nodes: its nodes.
            memory: the memory that all nodes of the function use.
            done: the nodes of this segment and of earlier segments.
        """
        outputs, storages = self._fgraph.outputs, self.plain.storage_map
        computed = dict.fromkeys(var for node in nodes for var in node.outputs)
        inputs = dict.fromkeys(
            var
            for node in nodes
            for var in node.inputs
            if var not in computed and not isinstance(var, Constant)
        )
        updates = [
            (variable, output)
            for output, variable in self._updated.items()
            if output in computed
            and isinstance(variable.type, GpuArrayType)
            # No later node reads the old value, and no other output shares its memory.
            and memory.users[variable] <= done
            and not any(variable in memory.find_roots(v) for v in outputs if v is not output)
        ]
        segment.updates = [(storages[variable], storages[output]) for variable, output in updates]
        written = set().union(*map(memory.find_written, nodes), (v for v, _ in updates))
        segment.written = [
            storages[var]
            for var in inputs
            if isinstance(var.type, GpuArrayType) and memory.find_roots(var) & written
        ]
        for var in inputs:
            users = [(user, i) for user, i in var.clients if self._segment_of.get(user) is segment]
            if isinstance(var.type, GpuArrayType):
                roots = memory.find_roots(var)
                is_view = any(root.owner is None for root in roots)
                if (
                    var.owner is None
                    or (is_view and (self._segment_of[var.owner].on_device or roots & written))
                    or any(roots & memory.find_roots(output) for output in outputs)
                ):
                    segment.arrays.append(storages[var])
                else:
                    segment.copied.append(storages[var])
                    if is_view:
                        segment.views.append(storages[var])
            elif all(CHECKED_INDICES.get(type(user.op)) == i for user, i in users):
                segment.checked += [
                    (segment.nodes[nodes.index(user)], storages[var]) for user, _ in users
                ]
            else:
                segment.integers.append(storages[var])
        segment.results = [
            storages[var]
            for var in computed
            if var in outputs or any(user not in done for user, _ in var.clients)
        ]

    def _run(self) -> list[Any]:
        """Run the segments in order; return the outputs and the new values of updated inputs."""
        if not self._segments:
            self._prepare()
        if (
            self._device is None
            or self.n_usual > max(MAX_MISSES, self.n_launched)
            or not any(segment.on_device for segment in self._segments)
        ):
            self._usual_calls = math.inf
            self._drop_graphs(self._segments)
            self._segments.clear()
            return self.plain()  # type: ignore[no-any-return]
        clear_storages(self.plain.pre_call_clear)
        self._replayed.clear()
        try:
            self._run_segments()
            outputs = [self._take_output(*output) for output in self._outputs]
        finally:
            clear_storages(self._temporary)
        for (_, _, updated), value in zip(self._outputs, outputs, strict=True):
            if updated is not None:
                updated[0] = value
        return outputs

    def _run_segments(self) -> None:
        """Run the segments in order."""
        for segment in self._segments:
            if segment.last is not None:
                # Put the arrays that the graph reads into the storages. A transfer from the host
                # overwrites the array in the storage of its output if the shape is the same. Then
                # the graph needs no copy of the transferred array.
                for storage, array in zip(segment.copied, segment.last.copied, strict=True):
                    storage[0] = array
        for segment in self._segments:
            key, graph = segment.find_graph() if segment.on_device else (None, None)
            if graph is not None:
                self._replay(segment, graph)
            elif segment.on_device and self._may_capture(segment, key):
                self._capture(segment, key)
            else:
                self._run_nodes(segment)

    def _run_nodes(self, segment: Segment) -> None:
        """Run the nodes of a segment; clear each storage after its last use."""
        for number in segment.nodes:
            try:
                self.plain.thunks[number]()
            except Exception:
                self._position = number
                raise
            clear_storages(self._cleared.get(number, ()))
        store_updates(segment)

    def _take_output(self, storage: Storage, owners: set[Segment], updated: Storage | None) -> Any:
        """Return the value of an output, in memory that no graph overwrites."""
        value = storage[0]
        if owners.isdisjoint(self._replayed):
            return value
        if updated is not None and value.gpudata == updated[0].gpudata:
            return updated[0]
        return value.copy(order="A")

    def _may_capture(self, segment: Segment, key: Any) -> bool:
        """Count a run without a graph; return whether to capture the segment in this run."""
        self.n_usual += 1
        assert self._device is not None
        if len(segment.calls) > MAX_MISSES:
            segment.calls.clear()
        segment.calls[key] += 1
        return (
            key is not None
            and segment.calls[key] > CALLS_BEFORE_CAPTURE
            and len(segment.graphs) < MAX_GRAPHS
            and self._device.graph_bytes < self._device.max_graph_bytes
        )

    def _replay(self, segment: Segment, graph: Graph) -> None:
        """Launch a graph, and set the storages of its results."""
        for (number, indices), n_rows in zip(segment.checked, graph.n_rows, strict=True):
            if ((indices[0] < -n_rows) | (indices[0] >= n_rows)).any():
                self._position = number
                raise IndexError("Index out of bounds.")
        for (value,), array in zip(segment.copied, graph.copied, strict=True):
            if value is not array:
                assign_array(array, value)
        graph.graph.launch()
        for storage, value in zip(segment.results, graph.results, strict=True):
            storage[0] = value.copy() if isinstance(value, np.ndarray) else value
        segment.last = graph
        self._replayed.add(segment)
        self.n_launched += 1

    def _capture(self, segment: Segment, key: Any) -> None:
        """Capture a segment as a graph, run its nodes as usual, and compare the results.

        If the capture fails or the results differ, the segment becomes a host segment.
        """
        graph, replayed = None, []
        written = [array for (array,) in segment.written]
        saved: list[Any] = []
        try:
            for storage in segment.views:
                storage[0] = storage[0].copy(order="A")
            saved += (array.copy() for array in written)
            graph = self._make_graph(segment, key[0])
            graph.graph.launch()
            replayed = read_arrays([*graph.results, *written])
        except Exception as error:  # from a node or from the driver
            logger.debug("%d nodes are not captured: %s", len(segment.nodes), error)
            if graph is not None:
                self._release([graph])
            graph = None
        for array, value in zip(written, saved, strict=False):
            assign_array(array, value)
        self._run_nodes(segment)
        if graph is not None:
            values = read_arrays([*(value for (value,) in segment.results), *written])
            if all(map(is_same, replayed, values)):
                segment.graphs[key] = segment.last = graph
                return
            logger.warning(
                "A CUDA graph did not compute the results of its %d nodes, so the function will not"
                " use it. gpuarray.graph_memory=0 disables CUDA graphs.",
                len(segment.nodes),
            )
            segment.graphs[key] = graph
        segment.on_device = False
        self._drop_graphs([segment])

    def _drop_graphs(self, segments: list[Segment]) -> None:
        """Remove the graphs of segments, and return their memory to the pool."""
        graphs = [graph for segment in segments for graph in segment.graphs.values()]
        for segment in segments:
            segment.graphs.clear()
            segment.last = None
        self._release(graphs)

    def _release(self, graphs: list[Graph]) -> None:
        """Return the memory of graphs to the pool."""
        # A graph reads results of other graphs.
        for graph in graphs:
            graph.arrays.clear()
            graph.copied.clear()
            graph.results.clear()
        for graph in graphs:
            assert self._device is not None
            self._device.release(graph.owned)

    def __del__(self) -> None:
        """Remove the graphs. At the interpreter's exit, the device may be gone: do nothing."""
        if not sys.is_finalizing():
            self._drop_graphs(self._segments)

    def _make_graph(self, segment: Segment, integers: tuple[Any, ...]) -> Graph:
        """Capture the nodes of a segment as a graph.

        Raises:
            CaptureError: the nodes cannot be captured.
            Exception: a node failed.
        """
        nodes = [self.plain.nodes[number] for number in segment.nodes]
        storages = self.plain.storage_map
        computed = [storages[var] for node in nodes for var in node.outputs]
        computed += [storage for node in nodes for storage in list_inner_storages(node)]
        temporary = {id(storage) for storage in computed}
        temporary -= {id(storage) for storage in segment.results}
        checked = {number for number, _ in segment.checked}
        n_rows = {}

        def run() -> None:
            """Run the nodes. Afterwards, only segment.results has arrays of the graph's memory."""
            clear_storages(computed)
            try:
                for number, node in zip(segment.nodes, nodes, strict=True):
                    if number in checked:
                        n_rows[number] = len(storages[node.inputs[0]][0])
                    self.plain.thunks[number]()
                    clear_storages(s for s in self._cleared.get(number, ()) if id(s) in temporary)
                store_updates(segment)
                clear_storages(s for s in computed if id(s) in temporary)
            except Exception as error:
                traceback.clear_frames(error.__traceback__)
                clear_storages(computed)
                raise

        # In-place nodes may change numbers on the host. All nodes run again after the capture, so
        # the capture gets copies of the numbers.
        numbers = [storage[0] for storage in segment.integers]
        for storage in segment.integers:
            storage[0] = copy(storage[0])
        updated = (variable for variable, _ in segment.updates)
        existing = {id(array) for (array,) in chain(segment.arrays, segment.copied, updated)}

        def list_owned() -> list[Any]:
            """List the results in the graphs' memory pool."""
            values = (value for (value,) in segment.results if value is not None)
            return [value for value in values if id(value) not in existing]

        assert self._device is not None
        try:
            cuda_graph = self._device.capture(run)
            if not all(hasattr(value, "dtype") for (value,) in segment.results):
                raise CaptureError("a result is not an array")
        except Exception:
            # `run` may have succeeded. Then the storages have arrays of the graphs' memory.
            owned = list_owned()
            clear_storages(segment.results)
            self._device.release(owned)
            raise
        finally:
            for storage, number in zip(segment.integers, numbers, strict=True):
                storage[0] = number
        graph = Graph(
            cuda_graph,
            [storage[0] for storage in segment.arrays],
            [storage[0] for storage in segment.copied],
            integers,
            [storage[0] for storage in segment.results],
            list_owned(),
            [n_rows[number] for number, _ in segment.checked],
        )
        clear_storages(segment.results)
        return graph


def make_integers_key(storages: Iterable[Storage]) -> tuple[Any, ...] | None:
    """Return a key of values on the host; None if a value cannot be a part of a key.

    Numbers and arrays of up to MAX_KEY_BYTES can be parts of a key.
    """
    key: list[Any] = []
    for (value,) in storages:
        if not isinstance(value, (np.ndarray, np.generic, int, float)):
            return None
        array = np.asarray(value)
        if array.nbytes > MAX_KEY_BYTES:
            return None
        key += (array.shape, array.tobytes())
    return tuple(key)


def store_updates(segment: Segment) -> None:
    """Copy new values of inputs to the inputs' memory, because keys contain their addresses."""
    for variable, output in segment.updates:
        (old,), (new,) = variable, output
        if old.shape == new.shape and old.gpudata != new.gpudata:
            assign_array(old, new)
            output[0] = old


def assign_array(target: Any, source: Any) -> None:
    """Copy an array to another array of the same shape, both on the device.

    pygpu cannot assign to an index of a 0-d array.
    """
    if target.ndim == 0:
        target, source = target.reshape((1,)), source.reshape((1,))
    target[...] = source


def clear_storages(storages: Iterable[Storage]) -> None:
    """Clear storages."""
    for storage in storages:
        storage[0] = None


def list_inner_storages(node: Apply) -> list[Storage]:
    """Return the storages of a Scan's inner functions, except of constants."""
    if not isinstance(node.op, Scan):
        return []
    vm = node.op.fn.fn
    storages = [s for var, s in vm.storage_map.items() if not isinstance(var, Constant)]
    return [*storages, *(s for inner in vm.nodes for s in list_inner_storages(inner))]


def read_arrays(arrays: Iterable[Any]) -> list[Any]:
    """Copy arrays to the host; return the copies."""
    return [np.array(array) for array in arrays]


def is_same(x: Any, y: Any) -> bool:
    """Return whether two arrays are equal within 1e-3 of their values plus 1e-6.

    Atomic additions may run in another order in each launch, and then round differently.
    """
    return x.shape == y.shape and (
        x.tobytes() == y.tobytes()
        or (x.dtype.kind in "fc" and np.allclose(x, y, rtol=1e-3, atol=1e-6, equal_nan=True))
    )


def replay_gpu_nodes(vm: Any, linker: Any) -> Any:
    """Return a virtual machine that replays a function's GPU nodes, or `vm` if it uses no graphs.

    A function uses no graphs if they are disabled, if `vm` is not Theano's CVM, or if a node is
    lazy. It also uses none if it has no Scan on the device, and fewer than MIN_NODES other nodes
    compute new arrays on the device.
    """
    if (
        not theano.gpuarray.pygpu_activated
        or theano.config.gpuarray.graph_memory == 0
        or type(vm).__name__ != "CVM"
        or any(thunk.lazy for thunk in vm.thunks)
    ):
        return vm
    kernels = [
        node
        for node in vm.nodes
        if isinstance(node.outputs[0].type, GpuArrayType) and not hasattr(node.op, "view_map")
    ]
    if len(kernels) < MIN_NODES and not any(isinstance(node.op, Scan) for node in kernels):
        return vm
    return ReplayVM(vm, linker.fgraph, linker.updated_vars)


linker_parts.vm_wrappers.append(replay_gpu_nodes)
