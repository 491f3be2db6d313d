"""Modules that contain only loops, in C code that names neither Python nor NumPy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from theano.gof.cmodule import DynamicModule
from theano.tensor.linkers.op_descriptions import LOOPS_H, OpDescription
from theano.tensor.loops_cgen import FUNCTIONS

# The headers of loops: theano_loops.h replaces all headers, <math.h> only if possible.
HEADER, MATH = '"theano_loops.h"', "<math.h>"
# The dtypes whose C types theano_loops.h declares.
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
)
# Names from the headers of Python and NumPy that theano_loops.h declares too.
DECLARED = {
    *(f"npy_{dtype}" for dtype in DTYPES),
    *("npy_intp", "PyErr_SetString", "PyExc_ZeroDivisionError"),
}
# Matches the names that headers of Python, NumPy, Theano and C++ declare.
HEADER_NAME = re.compile(r"\bstd\b|#\s*include\b|\b(?:_?Py|PY|NPY_|npy_|theano_)\w*")

# Words before a parenthesis for which code needs no <math.h>: keywords, and functions that
# theano_loops.h declares.
WITHOUT_MATH = {
    *re.findall(r"^THEANO_MATH_\d\((\w+)\)", LOOPS_H, re.MULTILINE),
    *("fill", "for", "if", "loops", "nan", "simdlen", "sizeof", "switch", "while"),
    *("PyErr_SetString", "THEANO_MACRO_MOD", "__builtin_inf"),
    *FUNCTIONS.values(),
}
# Matches words before a parenthesis, and constants of <math.h>.
CALLS = re.compile(r"\b(?:M_\w+|NAN|INFINITY|HUGE_VAL\w*|[A-Za-z_]\w*(?=\s*\())")


def needs_other_headers(codes: Iterable[str]) -> bool:
    """Return whether code uses names of Python or NumPy that theano_loops.h does not declare."""
    return not DECLARED.issuperset(HEADER_NAME.findall("\n".join(codes)))


@dataclass(frozen=True)
class Loops:
    """The loops of an op.

    Attributes:
        headers: the headers that the loops include.
        support_code: the pieces of C code that the loops call.
        description: the description of the op, which contains the C code of the loops.
    """

    headers: Sequence[str]
    support_code: Sequence[str]
    description: OpDescription

    def are_self_contained(self) -> bool:
        """Return whether the loops need no support code, and no header except <math.h>."""
        return not self.support_code and set(self.headers) <= {MATH}

    def includes(self) -> list[str]:
        """Return the headers to include, without <math.h> if theano_loops.h replaces it."""
        code = "\n".join([*self.support_code, self.description.loops, self.description.fill])
        omit_math = WITHOUT_MATH.issuperset(CALLS.findall(code))
        return [*(header for header in self.headers if header != MATH or not omit_math), HEADER]


class LoopsModule(DynamicModule):
    """A module that contains the loops of one op."""

    def __init__(self, loops: Loops) -> None:
        """Make a module of the loops; DynamicModule.finalize completes it later."""
        super().__init__()
        self.includes = loops.includes()
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
            f"""{self.description.code()}
extern "C" __attribute__((visibility("default")))
PyObject *PyInit_{name}(void) {{
    return theano_elemwise_module("{name}", &op);
}}""",
            file=stream,
        )
