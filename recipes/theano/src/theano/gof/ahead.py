"""What a function needs of g++ and of inner graphs is begun before it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import theano
from theano.gof import cc, cmodule, graph, utils
from theano.gof.compilation import Arguments, CompilationPool, ModuleParts

if TYPE_CHECKING:
    from theano.gof.cc import CLinker
    from theano.gof.graph import Apply, Variable

# What compile_ahead has begun: the linkers of nodes, by node, and what makes the function of a node
# that has an inner graph.
linkers: dict[Apply, CLinker] = {}
inner_functions: dict[Apply, Any] = {}


def kind_of(node: Apply) -> tuple[Any, tuple[tuple[Any, int], ...]]:
    """Return what determines the module of a node among those of one function."""
    return node.op, tuple(
        (
            variable.type,
            id(variable) if isinstance(variable, graph.Constant) else node.inputs.index(variable),
        )
        for variable in node.inputs
    )


def has_params_of(linker: CLinker, node: Apply) -> bool:
    """Return whether a linker of a node of the same kind passes a node's params to its C code."""
    params = node.run_params()
    return params is graph.NoParams or params in linker.node_params


def is_known(op: Any) -> bool:
    """Return whether an op and those in it are Theano's.

    C code of others may need headers that it does not name, and have macros and functions by which
    other code means something else.
    """
    inner = getattr(getattr(op, "fgraph", None), "apply_nodes", ())
    ops = [getattr(op, "scalar_op", None), *(node.op for node in inner)]
    return type(op).__module__.startswith("theano.") and all(
        each is None or is_known(each) for each in ops
    )


@contextlib.contextmanager
def errors_naming(node: Apply) -> Iterator[None]:
    """Raise what is raised in here with the node that it happened for."""
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


def add_missing(linker: CLinker, modules: dict[Any, tuple[ModuleParts, Arguments]]) -> None:
    """Add a linker's module, unless it is in the cache or g++ cannot compile it.

    Args:
        modules: the missing modules of other linkers, by the module's key: the DynamicModule and
            the arguments of compile_str.
    """
    try:
        if linker.c_compiler() is not cmodule.GCC_compiler:
            return
        key, cache = linker.cmodule_key(), cc.get_module_cache()
        if key in modules or key in cache.entry_from_key or cc.shipped_modules.get(key):
            return
        arguments = linker.compile_arguments()
        if linker.shipped_module(key, arguments):
            return
    except (KeyError, NotImplementedError, utils.MethodNotDefined):
        # There is no key, or no C code.
        return
    module_hash = cmodule.get_module_hash(arguments["src_code"], key)
    if module_hash not in cache.module_hash_to_key_data:
        module = linker.get_dynamic_module()
        module.alone = not all(
            is_known(node.op)
            and all(
                type(variable.type).__module__.startswith("theano.")
                for variable in node.inputs + node.outputs
            )
            for node in linker.node_order
        )
        modules[key] = module, arguments


def size(node: Apply) -> int:
    """Return how many nodes the inner graph of a node has."""
    return len(graph.io_toposort(node.op.inputs, node.op.outputs))


# Whose storage is where, and whether it is computed: lists of one element.
Map = dict["Variable", list[Any]]


@contextlib.contextmanager
def compile_ahead(nodes: Sequence[Apply], storage_map: Map, compute_map: Map) -> Iterator[None]:
    """Compile the modules of nodes, several at once.

    Op.make_thunk compiles one module after another, when it needs it. In this context, it finds
    those that were started here, and waits for them. While they are compiled, inner graphs are
    optimized, and their modules started.
    """
    modules: dict[Any, tuple[ModuleParts, Arguments]] = {}
    first_linkers: dict[Any, CLinker] = {}
    begun: list[Apply] = []

    def begin_module(node: Apply, storage_map: Map, compute_map: Map) -> None:
        node.op.prepare_node(node, storage_map=storage_map, compute_map=compute_map, impl="c")
        begun.append(node)
        kind: Any
        try:
            kind = kind_of(node)
            linker = first_linkers.get(kind)
        except TypeError:
            # A type cannot be hashed: it has no C code either.
            kind, linker = None, None
        if linker is None or not has_params_of(linker, node):
            linker = node.op.c_linker(node, [])
            linker.add_missing(modules)
            first_linkers.setdefault(kind, linker)
        linkers[node] = linker

    def begin(nodes: Sequence[Apply], storage_map: Map, compute_map: Map) -> None:
        known = len(modules)
        for node in nodes:
            if type(node.op).make_thunk is theano.gof.Op.make_thunk and node not in linkers:
                with errors_naming(node):
                    begin_module(node, storage_map, compute_map)
        missing = list(modules.values())[known:]
        inner: dict[int, Apply] = {}
        for node in nodes:
            if (
                hasattr(node.op, "optimize_inner")
                and not getattr(node.op, "fn", None)
                and node not in inner_functions
            ):
                # Nodes can share an op, and its function.
                inner.setdefault(id(node.op), node)
        # One alone is not worth a thread that is waited for.
        if len(missing) > 1 or (missing and (inner or pool.names)):
            pool.compile(missing)
        # The largest first, whose modules are compiled while others are optimized.
        for node in sorted(inner.values(), key=size, reverse=True):
            with errors_naming(node):
                link = inner_functions[node] = node.op.optimize_inner()
            begun.append(node)
            linker = link.maker.linker
            if getattr(linker, "c_thunks", False) is not False:
                begin(link.maker.fgraph.toposort(), {}, {})

    with CompilationPool() as pool:
        try:
            begin(nodes, storage_map, compute_map)
            yield
        finally:
            for node in begun:
                linkers.pop(node, None)
                inner_functions.pop(node, None)
