"""Base class of CLinker: compiler arguments, missing modules and shipped modules.

`linker_types` is the registry of the linkers for classes of ops. `vm_wrappers` is the registry of
wrappers of virtual machines.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from theano import config
from theano.gof import cmodule, shipped, utils
from theano.gof.compilation import Arguments, ModuleParts

# Maps a class of op to the linker class for its nodes. The default is CLinker.
linker_types: dict[type, type] = {}
# Functions that take a virtual machine and its linker, and return the virtual machine to use.
vm_wrappers: list[Callable[[Any, Any], Any]] = []
# Maps the key of a module to the shipped module, or to None if no module is shipped.
shipped_modules: dict[Any, ModuleType | None] = {}


def wrap_vm(vm: Any, linker: Any) -> Any:
    """Return the virtual machine to use instead of the virtual machine that a linker made."""
    for wrap in vm_wrappers:
        vm = wrap(vm, linker)
    return vm


def computed_once(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Decorate a method without arguments: compute its result once per object."""
    attribute = f"_{method.__name__}"

    @functools.wraps(method)
    def compute(self: Any) -> Any:
        if not hasattr(self, attribute):
            setattr(self, attribute, method(self))
        return getattr(self, attribute)

    return compute


def is_builtin(op: Any) -> bool:
    """Return whether the classes of an op and of all its inner ops belong to Theano.

    The C code of other ops may rely on headers that it does not include. Its macros and functions
    may change the meaning of other modules' code in the same source.
    """
    nodes = getattr(getattr(op, "fgraph", None), "apply_nodes", ())
    inner_ops = [getattr(op, "scalar_op", None), *(node.op for node in nodes)]
    return type(op).__module__.startswith("theano.") and all(
        inner is None or is_builtin(inner) for inner in inner_ops
    )


class LinkerParts:
    """Base class of CLinker: the linker of one node or of a graph."""

    # CLinker defines these attributes.
    node_order: Sequence[Any]
    c_compiler: Callable[[], Any]
    cmodule_key: Callable[[], Any]
    compile_args: Callable[[], list[str]]
    get_dynamic_module: Callable[[], Any]
    header_dirs: Callable[[], list[str]]
    lib_dirs: Callable[[], list[str]]
    libraries: Callable[[], list[str]]

    def uses_params(self) -> bool:
        """Return whether the thunks of this linker read the params of the node."""
        return True

    def make_compile_arguments(self) -> Arguments:
        """Return the keyword arguments of the compiler's compile_str, except `location`."""
        module = self.get_dynamic_module()
        code = module.code()
        return {
            "module_name": module.code_hash,
            "src_code": code,
            "include_dirs": self.header_dirs(),
            "lib_dirs": self.lib_dirs(),
            "libs": self.libraries(),
            "preargs": self.compile_args(),
        }

    def find_shipped_module(
        self, key: Any, arguments: Arguments | None = None
    ) -> ModuleType | None:
        """Return the shipped module for a key.

        Args:
            key: the module's key.
            arguments: the arguments of compile_str for this linker's module; computed if None.

        Returns:
            The module, or None if no module is shipped or if the module cache has the key.
        """
        if key not in shipped_modules:
            if key in cmodule.get_module_cache(config.compiledir).entry_from_key:
                return None
            shipped_modules[key] = shipped.find_module(
                self.get_dynamic_module(), arguments or self.make_compile_arguments()
            )
        return shipped_modules[key]

    def add_missing(self, modules: dict[Any, tuple[ModuleParts, Arguments]]) -> None:
        """Add this linker's module to `modules` if it must be compiled.

        A module needs no compilation if it is cached or shipped, or if its op has no C code.

        Args:
            modules: maps the key of a module to compile to its DynamicModule and compile_str's
                arguments.
        """
        try:
            if self.c_compiler() is not cmodule.GCC_compiler:
                return
            key, cache = self.cmodule_key(), cmodule.get_module_cache(config.compiledir)
            if key in modules or key in cache.entry_from_key or shipped_modules.get(key):
                return
            arguments = self.make_compile_arguments()
            if self.find_shipped_module(key, arguments):
                return
        except (KeyError, NotImplementedError, utils.MethodNotDefined):
            # The module has no cache key, or the op has no C code.
            return
        module_hash = cmodule.get_module_hash(arguments["src_code"], key)
        if module_hash not in cache.module_hash_to_key_data:
            module = self.get_dynamic_module()
            module.alone = not all(
                is_builtin(node.op)
                and all(
                    type(variable.type).__module__.startswith("theano.")
                    for variable in node.inputs + node.outputs
                )
                for node in self.node_order
            )
            modules[key] = module, arguments
