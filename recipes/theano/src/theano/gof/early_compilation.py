"""Early and parallel compilation of the modules of a function and of its inner functions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import theano
from theano import config
from theano.gof import background_compilation, graph
from theano.gof.compilation import Arguments, CompilationPool, ModuleParts

if TYPE_CHECKING:
    from theano.gof.cc import CLinker
    from theano.gof.graph import Apply, Variable

# Maps a node to its linker, if compile_ahead has started to compile the linker's module.
linkers: dict[Apply, CLinker] = {}
# Functions that are called with the modules for which compile_ahead starts g++.
listeners: list[Callable[[Sequence[ModuleParts]], None]] = []
# Maps a node with an inner graph to the inner function, which is optimized but not linked yet.
inner_functions: dict[Apply, Any] = {}


class UnlinkedFunction:
    """Callable that makes the thunks of an optimized graph and returns its Function.

    Attributes:
        maker: the FunctionMaker, whose graph is optimized.
        defaults: the initial values of the function's inputs.
        profile: the profile to which the time is added, or None.
        seconds: the time that optimization took.
    """

    def __init__(self, maker: Any, defaults: Sequence[Any], profile: Any, start: float) -> None:
        """Store the parts of a function whose optimization started at the time ``start``."""
        self.maker = maker
        self.defaults = defaults
        self.profile = profile
        self.seconds = time.time() - start

    def __call__(self) -> Any:
        """Make the thunks and return the Function."""
        start = time.time()
        with theano.change_flags(compute_test_value="off"):
            function = self.maker.create(self.defaults)
        if self.profile:
            self.profile.compile_time += self.seconds + time.time() - start
            self.profile.nb_nodes = len(function.maker.fgraph.apply_nodes)
        return function


def make_module_signature(node: Apply) -> tuple[Any, tuple[tuple[Any, int], ...]]:
    """Return a key that is equal for nodes of one function that need the same module.

    Returns:
        The op, and for each input its type and a number. The number is the id of a constant, or the
        position of the variable's first occurrence among the inputs.
    """
    return node.op, tuple(
        (
            variable.type,
            id(variable) if isinstance(variable, graph.Constant) else node.inputs.index(variable),
        )
        for variable in node.inputs
    )


def shares_params(linker: CLinker, node: Apply) -> bool:
    """Return whether the linker of another node can make the thunk of a node.

    This is true in three cases: the linker uses no params, the node has no params, or the linker
    has the params of the node.

    Args:
        linker: the linker of another node with the same make_module_signature.
        node: the node.
    """
    if not linker.uses_params():
        return True
    params = node.run_params()
    return params is graph.NoParams or params in linker.node_params


@contextlib.contextmanager
def add_node_to_errors(node: Apply) -> Iterator[None]:
    """Insert a message and a node before the arguments of an exception that the block raises."""
    try:
        yield
    except Exception as error:
        error.args = (
            "The following error happened while compiling the node",
            node,
            "\n",
            *error.args,
        )
        raise


def count_inner_nodes(node: Apply) -> int:
    """Count the nodes of a node's inner graph."""
    return len(graph.io_toposort(node.op.inputs, node.op.outputs))


# The type of a storage_map or a compute_map: maps a variable to a list of one element.
Map = dict["Variable", list[Any]]


@contextlib.contextmanager
def compile_ahead(nodes: Sequence[Apply], storage_map: Map, compute_map: Map) -> Iterator[None]:
    """Compile the modules of nodes in parallel.

    Outside of this context, Op.make_thunk compiles one module after another. On entry, the context
    starts runs of g++ in threads. Meanwhile it optimizes inner graphs and starts runs for their
    modules. In the context, Op.make_thunk waits for the run that compiles its module.

    Args:
        nodes: the nodes of a function, in the order of computation.
        storage_map: the function's storage_map.
        compute_map: the function's compute_map.
    """
    modules: dict[Any, tuple[ModuleParts, Arguments]] = {}
    first_linkers: dict[Any, CLinker] = {}
    started_nodes: list[Apply] = []

    def add_module(node: Apply, storage_map: Map, compute_map: Map) -> None:
        """Add the node's module to `modules` if it must be compiled."""
        node.op.prepare_node(node, storage_map=storage_map, compute_map=compute_map, impl="c")
        started_nodes.append(node)
        signature: Any
        try:
            signature = make_module_signature(node)
            linker = first_linkers.get(signature)
        except TypeError:
            # The type of an input has no hash. Types without a hash have no C code.
            signature, linker = None, None
        if linker is None or not shares_params(linker, node):
            linker = node.op.c_linker(node, [])
            linker.add_missing(modules)
            first_linkers.setdefault(signature, linker)
        linkers[node] = linker

    def start(nodes: Sequence[Apply], storage_map: Map, compute_map: Map) -> None:
        """Start to compile the modules of nodes and of their inner graphs."""
        n_started = len(modules)
        for node in nodes:
            if type(node.op).make_thunk is theano.gof.Op.make_thunk and node not in linkers:
                with add_node_to_errors(node):
                    add_module(node, storage_map, compute_map)
        missing = list(modules.values())[n_started:]
        for listener in listeners:
            listener([module for module, _ in missing])
        nodes_by_op: dict[int, Apply] = {}
        for node in nodes:
            if (
                hasattr(node.op, "optimize_inner")
                and not getattr(node.op, "fn", None)
                and node not in inner_functions
            ):
                # Nodes with the same op have the same inner function.
                nodes_by_op.setdefault(id(node.op), node)
        # A single module gains nothing from a run in another thread.
        if len(missing) > 1 or (missing and (nodes_by_op or pool.names)):
            pool.compile(missing)
        # Begin with the largest graph: g++ compiles its modules while the other graphs are
        # optimized.
        for node in sorted(nodes_by_op.values(), key=count_inner_nodes, reverse=True):
            with add_node_to_errors(node):
                unlinked = inner_functions[node] = node.op.optimize_inner()
            started_nodes.append(node)
            linker = unlinked.maker.linker
            if getattr(linker, "c_thunks", False) is not False:
                start(unlinked.maker.fgraph.toposort(), {}, {})

    with CompilationPool() as pool:
        try:
            start(nodes, storage_map, compute_map)
            yield
        finally:
            for node in started_nodes:
                linkers.pop(node, None)
                inner_functions.pop(node, None)
    background_compilation.compiler.start()


def make_thunks(
    nodes: Sequence[Apply], storage_map: Map, compute_map: Map, impl: str | None
) -> tuple[list[Any], dict[Apply, float]]:
    """Make the thunks of nodes; compile their modules in parallel.

    Args:
        nodes: the nodes of a function, in the order of computation.
        storage_map: the function's storage_map.
        compute_map: the function's compute_map.
        impl: "py" for thunks in Python only, or None.

    Returns:
        The thunks, and a dictionary from each node to the seconds that making its thunk took.
    """
    thunks = []
    times = {}
    with contextlib.ExitStack() as stack:
        if impl is None and config.cxx:
            stack.enter_context(compile_ahead(nodes, storage_map, compute_map))
        for node in nodes:
            start = time.time()
            with add_node_to_errors(node):
                # The list no_recycling is empty, because the virtual machine itself empties
                # storages in each call.
                thunk = node.op.make_thunk(node, storage_map, compute_map, [], impl=impl)
                if not hasattr(thunk, "lazy"):
                    thunk.lazy = False
            thunks.append(thunk)
            times[node] = time.time() - start
    return thunks, times
