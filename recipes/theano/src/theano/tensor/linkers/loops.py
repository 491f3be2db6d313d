"""Linker that compiles only the loops of an Elemwise, not the thunk around them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import config
from theano.gof import background_compilation, linker_parts, utils
from theano.gof.cc import CLinker
from theano.gof.compilation import Arguments, ModuleParts
from theano.gof.linker_parts import computed_once, is_builtin, linker_types
from theano.tensor import elemwise, thunks_ext
from theano.tensor import loops_cgen as cgen
from theano.tensor.linkers import chains, shipped_loops
from theano.tensor.linkers.headers import MATH, PYTHON, find_headers, get_dtypes
from theano.tensor.linkers.loop_modules import Loops, LoopsModule
from theano.tensor.linkers.op_descriptions import OpDescription

if TYPE_CHECKING:
    from theano.gof import Apply, Variable


class LoopsLinker(CLinker):
    """Compile only the loops of an Elemwise, if they use neither Python nor NumPy.

    Compiling them takes g++ a quarter of the time that a complete module of an Elemwise takes.
    """

    def get_dynamic_module(self) -> Any:
        """Return a LoopsModule, or CLinker's complete module if the loops need Python or NumPy."""
        if not hasattr(self, "_mod"):
            loops = self.make_loops()
            if loops is None:
                return super().get_dynamic_module()
            self._mod = LoopsModule(loops)
        return self._mod

    @computed_once
    def cmodule_key(self) -> Any:
        """Return the module's cache key; for shipped loops, the key of shipped_loops.find_key."""
        return shipped_loops.find_key(self) or super().cmodule_key()

    def add_missing(self, modules: dict[Any, tuple[ModuleParts, Arguments]]) -> None:
        """Add the module to `modules` if it must be compiled before the node can be computed.

        If a chain can compute the node, request the module's compilation in the background instead.
        """
        n_modules = len(modules)
        super().add_missing(modules)
        if len(modules) == n_modules or not config.cmodule.background:
            return
        chain = chains.make_module(self)
        if chain is None:
            return
        key, (module, arguments) = modules.popitem()
        linker_parts.shipped_modules[key], address = chain

        def install(compiled: ModuleType) -> None:
            thunks_ext.set_loops(address, compiled)
            linker_parts.shipped_modules[key] = compiled

        background_compilation.compiler.request(
            key, background_compilation.Request(module, arguments, install)
        )

    def list_flags(self) -> list[str]:
        """Return g++'s flags for a module of loops."""
        # Use -O2 with vectorization: the other passes of -O3 take time, and improve other kinds of
        # loops only.
        flags = ["-O2" if flag == "-O3" else flag for flag in self.compile_args()]
        # Round after each scalar op, so that fused and separate loops compute the same bits.
        return [*flags, "-ftree-vectorize", "-ffp-contract=off", "-pipe", "-nodefaultlibs"]

    def make_compile_arguments(self) -> dict[str, Any]:
        """Return compile_str's arguments; link a LoopsModule with only libc, libm and libgcc."""
        arguments: dict[str, Any] = super().make_compile_arguments()
        if isinstance(self.get_dynamic_module(), LoopsModule):
            arguments["preargs"] = self.list_flags()
            arguments["libs"] = [*arguments["libs"], "m", "c", "gcc"]
        return arguments

    @computed_once
    def make_loops(self) -> Loops | None:
        """Generate the loops; return None if the op needs a complete module.

        This is the case if the loops use Python, NumPy or OpenMP, or if the op is not Theano's.
        """
        (node,) = self.node_order
        op, scalar_op = node.op, node.op.scalar_op
        if self.no_recycling or op.openmp or not config.check_input or not is_builtin(scalar_op):
            return None
        op.prepare_node(node, None, None, "c")
        inputs = utils.uniq(node.inputs)
        inames = [f"i{inputs.index(variable)}" for variable in node.inputs]
        onames = [f"o{i}" for i in range(len(node.outputs))]
        name = "node_<<<<HASH_PLACEHOLDER>>>>_0"
        fail = "{return -1;}"
        sub = {"id": 0, "fail": fail}
        if op.may_be_contiguous(node):
            with contextlib.suppress(utils.MethodNotDefined):
                scalar_op.c_code_contiguous(node, name, inames, onames, sub)
                return None
        support_code = []
        with contextlib.suppress(utils.MethodNotDefined):
            support_code.append(op.c_support_code())
        with contextlib.suppress(utils.MethodNotDefined):
            support_code.append(op.c_support_code_apply(node, name))
        task = cgen.choose_functions(op.task_code(node, name, inames, onames, sub, fail))
        needed = find_headers(
            scalar_op, get_dtypes(node.inputs), get_dtypes(node.inputs + node.outputs)
        )
        if PYTHON in needed:
            return None
        headers = [
            header
            for header in self.headers()
            if "numpy" not in header
            and "theano_tensor" not in header
            and (header != MATH or MATH in needed)
        ]
        description = self.describe_elemwise(node, inputs, onames, task, fail in task)
        return Loops(headers, support_code, description)

    def describe_elemwise(
        self,
        node: Apply,
        inputs: Sequence[Variable],
        onames: Sequence[str],
        task: str,
        can_fail: bool,
    ) -> OpDescription:
        """Return the OpDescription of an Elemwise.

        Args:
            node: the node of the Elemwise.
            inputs: the inputs of the node, without duplicates.
            onames: the C names of the outputs in the task.
            task: C code that computes one element of each output.
            can_fail: whether the task can raise an exception.
        """
        # For each output, the number of the input that it overwrites, or -1.
        overwritten = [
            inputs.index(node.inputs[node.op.inplace_pattern[i]])
            if i in node.op.inplace_pattern
            else -1
            for i in range(len(node.outputs))
        ]
        arrays = [(f"i{i}", variable) for i, variable in enumerate(inputs)]
        for oname, variable, i in zip(onames, node.outputs, overwritten, strict=True):
            if i < 0:
                arrays.append((oname, variable))
            else:
                task = f"{get_c_type(variable)} &{oname}_i = i{i}_i;\n{task}"
        broadcast = [variable.broadcastable for _, variable in arrays]
        loops = cgen.make_loops(
            [name for name, _ in arrays],
            [get_c_type(variable) for _, variable in arrays],
            broadcast,
            f"{{{task}}}\n",
            strides="any" if can_fail else "next to",
        )
        return self.describe_op(
            inputs,
            node.outputs,
            loops,
            # Follow the memory order of the last overwritten input; by default, of the last array.
            like=([i for i in overwritten if i >= 0] or [len(arrays) - 1])[-1],
            overwritten=tuple(overwritten),
            broadcast=cgen.format_patterns(broadcast),
            assumes_contiguous=not can_fail and bool(broadcast[0]),
        )

    def describe_op(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        loops: str,
        **fields: Any,
    ) -> OpDescription:
        """Return the OpDescription of an op.

        Args:
            inputs: the node's inputs, without duplicates.
            outputs: the node's outputs.
            loops: the body of a C function of type theano_loops.
            fields: the values of other fields of the OpDescription.
        """
        variables = [*inputs, *outputs]
        storages = utils.uniq(self.inputs + self.outputs + self.orphans)
        return OpDescription(
            nd=max(variable.ndim for variable in variables),
            n_inputs=len(inputs),
            n_outputs=len(outputs),
            n_storages=len(storages),
            failure=self.get_init_tasks()[1][-1][2],
            storages=tuple(storages.index(variable) for variable in variables),
            types=tuple(np.dtype(variable.dtype).num for variable in variables),
            loops=loops,
            **fields,
        )


def get_c_type(variable: Variable) -> str:
    """Return the C type of the elements of an array."""
    name: str = variable.type.dtype_specs()[1]
    return name


linker_types[elemwise.Elemwise] = LoopsLinker
