"""The loops of an Elemwise, compiled alone."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import config
from theano.gof import utils
from theano.gof.ahead import is_known
from theano.gof.cc import CLinker, linker_types
from theano.tensor import elemwise
from theano.tensor import loops_cgen as cgen
from theano.tensor.linkers import common
from theano.tensor.linkers.modules import Loops, LoopsModule, needs_more
from theano.tensor.linkers.tables import Table

if TYPE_CHECKING:
    from theano.gof import Apply, Variable


class LoopsLinker(CLinker):
    """Compile an Elemwise's loops, where they need neither Python nor NumPy.

    g++ takes a fourth of the time that it takes for all of an Elemwise.
    """

    def get_dynamic_module(self) -> Any:
        """Return the LoopsModule, or CLinker's module if the loops need more."""
        if not hasattr(self, "_mod"):
            module = self.loops_module()
            if module is None:
                return super().get_dynamic_module()
            self._mod = module
        return self._mod

    def cmodule_key(self) -> Any:
        """Return the module's key; a module that comes with the environment is known by it."""
        if not hasattr(self, "_cmodule_key"):
            key = common.key(self)
            if key:
                self._cmodule_key = key
        return super().cmodule_key()

    def flags(self) -> list[str]:
        """Return g++'s flags for loops alone."""
        # What -O3 has more takes longer, and is for loops of other kinds.
        flags = ["-O2" if flag == "-O3" else flag for flag in self.compile_args()]
        return [*flags, "-ftree-vectorize", "-pipe", "-nodefaultlibs"]

    def compile_arguments(self) -> dict[str, Any]:
        """Return compile_str's arguments: loops alone do not link with Python."""
        arguments: dict[str, Any] = super().compile_arguments()
        if isinstance(self.get_dynamic_module(), LoopsModule):
            arguments["preargs"] = self.flags()
            arguments["libs"] = [*arguments["libs"], "m", "c", "gcc"]
        return arguments

    def loops_module(self) -> LoopsModule | None:
        """Return the LoopsModule, or None if the loops need more."""
        loops = self.loops()
        return LoopsModule(loops) if loops else None

    def loops(self) -> Loops | None:
        """Return the loops, or None if they need more."""
        if not hasattr(self, "_loops"):
            self._loops = self.make_loops()
        return self._loops

    def make_loops(self) -> Loops | None:
        """Make what loops() returns."""
        (node,) = self.node_order
        op, scalar_op = node.op, node.op.scalar_op
        if self.no_recycling or op.openmp or not config.check_input or not is_known(scalar_op):
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
        task = cgen.with_functions(op.task_code(node, name, inames, onames, sub, fail))
        if needs_more([task, *support_code, *map(ctype, inputs + node.outputs)]):
            return None
        headers = [
            header
            for header in self.headers()
            if "numpy" not in header and "theano_tensor" not in header
        ]
        table = self.description(node, inputs, onames, task, fail in task)
        return Loops(headers, support_code, table)

    def description(
        self,
        node: Apply,
        inputs: Sequence[Variable],
        onames: Sequence[str],
        task: str,
        can_fail: bool,
    ) -> Table:
        """Return the table of an Elemwise.

        Args:
            node: the Elemwise's.
            inputs: its inputs, each once.
            onames: the names of its outputs in the task.
            task: computes an element of each output.
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
        return self.table(
            inputs,
            node.outputs,
            loops,
            # The order of the last output that overwrites an input, or else of the last one.
            like=([i for i in overwritten if i >= 0] or [len(arrays) - 1])[-1],
            overwritten=tuple(overwritten),
            broadcast=cgen.pattern_strings(broadcast),
            next_to=not can_fail and bool(broadcast[0]),
        )

    def table(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        loops: str,
        **fields: Any,
    ) -> Table:
        """Return the table of an op.

        Args:
            inputs: the node's, each once.
            outputs: the node's.
            loops: the body of a function of C type theano_loops.
            fields: those that are not of all ops.
        """
        variables = [*inputs, *outputs]
        storages = utils.uniq(self.inputs + self.outputs + self.orphans)
        return Table(
            nd=max(each.ndim for each in variables),
            n_inputs=len(inputs),
            n_outputs=len(outputs),
            n_storages=len(storages),
            failure=self.get_init_tasks()[1][-1][2],
            storages=tuple(storages.index(each) for each in variables),
            types=tuple(np.dtype(each.dtype).num for each in variables),
            loops=loops,
            **fields,
        )


def ctype(variable: Variable) -> str:
    """Return the C type of the elements of an array."""
    name: str = variable.type.dtype_specs()[1]
    return name


linker_types[elemwise.Elemwise] = LoopsLinker
