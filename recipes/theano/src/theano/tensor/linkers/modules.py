"""Modules of loops alone, in C that names neither Python nor NumPy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from theano import gof
from theano.gof.cmodule import DynamicModule
from theano.tensor.loops_cgen import FUNCTIONS

# What loops may use of Python's and NumPy's headers: theano_loops.h has it.
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
)
KNOWN = {
    *(f"npy_{dtype}" for dtype in DTYPES),
    *("npy_intp", "PyErr_SetString", "PyExc_ZeroDivisionError"),
}
UNKNOWN = re.compile(r"\bstd\b|#\s*include\b|\b(?:_?Py|PY|NPY_|npy_|theano_)\w*")

# Words before parentheses that do not need <math.h>: theano_loops.h has the functions.
WITHOUT_MATH = {
    *re.findall(
        r"^THEANO_MATH_\d\((\w+)\)",
        (Path(gof.__file__).parent / "c_code" / "theano_loops.h").read_text(),
        re.MULTILINE,
    ),
    *("fill", "for", "if", "loops", "simdlen", "sizeof", "switch", "while"),
    *("PyErr_SetString", "THEANO_MACRO_MOD", "__builtin_inf"),
    *FUNCTIONS.values(),
}
MATH = re.compile(r"\b(?:M_\w+|NAN|INFINITY|HUGE_VAL\w*|[A-Za-z_]\w*(?=\s*\())")


def needs_more(codes: Iterable[str]) -> bool:
    """Return whether code uses more of Python and NumPy than theano_loops.h has."""
    return not KNOWN.issuperset(UNKNOWN.findall("\n".join(codes)))


class LoopsModule(DynamicModule):
    """A module that is made of the loops of an op."""

    def __init__(self, headers: Sequence[str], support_code: Sequence[str], op: str) -> None:
        """A module that is not finalized.

        Args:
            headers: what the loops include; not <math.h>, where nothing of it is used.
            support_code: what the loops need.
            op: C code that defines "op", a theano_elemwise_op.
        """
        super().__init__()
        if WITHOUT_MATH.issuperset(MATH.findall("\n".join([*support_code, op]))):
            headers = [header for header in headers if header != "<math.h>"]
        self.includes = [*headers, '"theano_loops.h"']
        for code in support_code:
            self.add_support_code(code)
        self.op = op

    def macros_left(self) -> tuple[str, ...]:
        """Return what code after it in one source must have before it too."""
        # <math.h> declares what modules without it do.
        return (*self.includes, *super().macros_left())

    def print_functions(self, stream: TextIO) -> None:
        """Write the op, and what makes a module of it, to a stream."""
        name = self.hash_placeholder
        print(
            f"""{self.op}
extern "C" __attribute__((visibility("default")))
PyObject *PyInit_{name}(void) {{
    return theano_elemwise_module("{name}", &op);
}}""",
            file=stream,
        )
