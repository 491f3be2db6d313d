"""Modules that contain only loops, in C code that names neither Python nor NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TextIO

from theano.gof.cmodule import DynamicModule
from theano.tensor.linkers.op_descriptions import OpDescription

# The header of all modules of loops.
HEADER = '"theano_loops.h"'


class Loops(NamedTuple):
    """The loops of an op.

    Attributes:
        headers: the headers that the loops include in addition to theano_loops.h.
        support_code: the pieces of C code that the loops call.
        description: the description of the op, which contains the C code of the loops.
    """

    headers: Sequence[str]
    support_code: Sequence[str]
    description: OpDescription

    def are_self_contained(self) -> bool:
        """Return whether the loops need no functions, and no header except theano_loops.h."""
        return not self.headers and all(
            code.startswith("#define THEANO_MACRO_") for code in self.support_code if code
        )


class LoopsModule(DynamicModule):
    """A module that contains the loops of one op."""

    def __init__(self, loops: Loops) -> None:
        """Make a module of the loops; DynamicModule.finalize completes it later."""
        super().__init__()
        self.includes = [*loops.headers, HEADER]
        for code in loops.support_code:
            self.add_support_code(code)
        self.description = loops.description

    def shared_prefix(self) -> tuple[str, ...]:
        """Return the leading code that must be equal in all modules of one source."""
        # Modules with and without <math.h> cannot share a source: theano_loops.h declares the
        # functions of <math.h> only if <math.h> is not included.
        return (*self.includes, *super().shared_prefix())

    def print_functions(self, stream: TextIO) -> None:
        """Write the op's description and the module's initialization to a stream."""
        name = self.hash_placeholder
        print(
            f"""{self.description.format_code()}
extern "C" __attribute__((visibility("default")))
PyObject *PyInit_{name}(void) {{
    return theano_elemwise_module("{name}", &op);
}}""",
            file=stream,
        )
