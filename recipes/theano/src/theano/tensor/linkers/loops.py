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
from theano.tensor.linkers.modules import LoopsModule, needs_more

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

    def compile_arguments(self) -> dict[str, Any]:
        """Return compile_str's arguments: loops alone do not link with Python."""
        arguments: dict[str, Any] = super().compile_arguments()
        if isinstance(self.get_dynamic_module(), LoopsModule):
            # What -O3 has more takes longer, and is for loops of other kinds.
            flags = ["-O2" if flag == "-O3" else flag for flag in arguments["preargs"]]
            arguments["preargs"] = [*flags, "-ftree-vectorize", "-pipe", "-nodefaultlibs"]
            arguments["libs"] = [*arguments["libs"], "m", "c", "gcc"]
        return arguments

    def loops_module(self) -> LoopsModule | None:
        """Return the LoopsModule, or None if the loops need more."""
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
        return LoopsModule(
            [
                header
                for header in self.headers()
                if "numpy" not in header and "theano_tensor" not in header
            ],
            support_code,
            self.description(node, inputs, onames, task, fail in task),
        )

    def description(
        self,
        node: Apply,
        inputs: Sequence[Variable],
        onames: Sequence[str],
        task: str,
        can_fail: bool,
    ) -> str:
        """Return C code that defines "op".

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
        # The order of the last output that overwrites an input, or else of the last one.
        like = ([i for i in overwritten if i >= 0] or [len(arrays) - 1])[-1]
        broadcast = [variable.broadcastable for _, variable in arrays]
        loops = cgen.make_loops(
            [name for name, _ in arrays],
            [ctype(variable) for _, variable in arrays],
            broadcast,
            f"{{{task}}}\n",
            strides="any" if can_fail else "next to",
        )
        next_to = int(not can_fail and bool(broadcast[0]))
        return self.table(
            inputs,
            node.outputs,
            loops,
            f"static const int overwritten[] = {{{', '.join(map(str, overwritten))}}};\n"
            f"static const char *const broadcast[] = {{{cgen.pattern_strings(broadcast)}}};\n",
            f"{like},\n    storages, types, overwritten, broadcast, loops, {next_to}",
        )

    def table(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        loops: str,
        declared: str,
        fields: str,
    ) -> str:
        """Return C code that defines "op", a theano_elemwise_op, see theano_loops.h.

        Args:
            inputs: the node's, each once.
            outputs: the node's.
            loops: the body of a function of C type theano_loops.
            declared: other C code that the fields name, in whole lines.
            fields: from "like" on.
        """
        variables = [*inputs, *outputs]
        storages = utils.uniq(self.inputs + self.outputs + self.orphans)
        places = ", ".join(str(storages.index(each)) for each in variables)
        types = ", ".join(str(np.dtype(each.dtype).num) for each in variables)
        nd = max(each.ndim for each in variables)
        failure = self.get_init_tasks()[1][-1][2]
        return f"""
static int loops(char *const *data, const npy_intp *sizes,
                 const npy_intp *strides) {{{loops}}}
static const int storages[] = {{{places}}};
static const int types[] = {{{types}}};
{declared}static const theano_elemwise_op op = {{
    {nd}, {len(inputs)}, {len(outputs)}, {len(storages)}, {failure}, {fields}}};
"""


def ctype(variable: Variable) -> str:
    """Return the C type of the elements of an array."""
    name: str = variable.type.dtype_specs()[1]
    return name


linker_types[elemwise.Elemwise] = LoopsLinker
