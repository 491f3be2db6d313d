"""Linker that compiles only the loops of an Elemwise."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import config
from theano.gof import utils
from theano.gof.cc import CLinker
from theano.gof.linker_parts import computed_once, is_builtin, linker_types
from theano.tensor import elemwise
from theano.tensor import loops_cgen as cgen
from theano.tensor.linkers import shipped_loops
from theano.tensor.linkers.loop_modules import Loops, LoopsModule, needs_other_headers
from theano.tensor.linkers.op_descriptions import OpDescription

if TYPE_CHECKING:
    from theano.gof import Apply, Variable


class LoopsLinker(CLinker):
    """Compile an Elemwise's loops, if they need neither Python nor NumPy.

    g++ takes a quarter of the time that it needs for a complete module of an Elemwise.
    """

    def get_dynamic_module(self) -> Any:
        """Return a LoopsModule, or CLinker's module if the loops need other code."""
        if not hasattr(self, "_mod"):
            module = self.loops_module()
            if module is None:
                return super().get_dynamic_module()
            self._mod = module
        return self._mod

    @computed_once
    def cmodule_key(self) -> Any:
        """Return the module's key; the keys of shipped modules have a separate format."""
        return shipped_loops.find_key(self) or super().cmodule_key()

    def flags(self) -> list[str]:
        """Return g++'s flags for a module of loops."""
        # The passes that only -O3 has take time and improve other kinds of loops.
        flags = ["-O2" if flag == "-O3" else flag for flag in self.compile_args()]
        return [*flags, "-ftree-vectorize", "-pipe", "-nodefaultlibs"]

    def compile_arguments(self) -> dict[str, Any]:
        """Return compile_str's arguments; a LoopsModule links with libc, libm and libgcc only."""
        arguments: dict[str, Any] = super().compile_arguments()
        if isinstance(self.get_dynamic_module(), LoopsModule):
            arguments["preargs"] = self.flags()
            arguments["libs"] = [*arguments["libs"], "m", "c", "gcc"]
        return arguments

    def loops_module(self) -> LoopsModule | None:
        """Return a LoopsModule, or None if the loops need other code."""
        loops = self.loops()
        return LoopsModule(loops) if loops else None

    def loops(self) -> Loops | None:
        """Return the loops, made once, or None if they need other code."""
        if not hasattr(self, "_loops"):
            self._loops = self.make_loops()
        return self._loops

    def make_loops(self) -> Loops | None:
        """Generate the loops; return None if they use Python, NumPy or OpenMP."""
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
        if needs_other_headers([task, *support_code, *map(ctype, inputs + node.outputs)]):
            return None
        headers = [
            header
            for header in self.headers()
            if "numpy" not in header and "theano_tensor" not in header
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
        """Describe an Elemwise.

        Args:
            node: the node of the Elemwise.
            inputs: its inputs without duplicates.
            onames: the names of its outputs in the task.
            task: C code that computes one element of each output.
            can_fail: whether the task can raise an exception.
        """
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
                task = f"{ctype(variable)} &{oname}_i = i{i}_i;\n{task}"
        broadcast = [variable.broadcastable for _, variable in arrays]
        loops = cgen.make_loops(
            [name for name, _ in arrays],
            [ctype(variable) for _, variable in arrays],
            broadcast,
            f"{{{task}}}\n",
            strides="any" if can_fail else "next to",
        )
        return self.describe_op(
            inputs,
            node.outputs,
            loops,
            # The last output that overwrites an input, otherwise the last array.
            like=([i for i in overwritten if i >= 0] or [len(arrays) - 1])[-1],
            overwritten=tuple(overwritten),
            broadcast=cgen.pattern_strings(broadcast),
            next_to=not can_fail and bool(broadcast[0]),
        )

    def describe_op(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        loops: str,
        **fields: Any,
    ) -> OpDescription:
        """Describe the op of a node.

        Args:
            inputs: the node's inputs without duplicates.
            outputs: the node's outputs.
            loops: the body of a function of C type theano_loops.
            fields: the fields that only an Elemwise or only a CAReduce has.
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


def ctype(variable: Variable) -> str:
    """Return the C type of the elements of an array."""
    name: str = variable.type.dtype_specs()[1]
    return name


linker_types[elemwise.Elemwise] = LoopsLinker
