"""Modules of loops alone, in C that names neither Python nor NumPy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from theano import gof
from theano.gof.cmodule import DynamicModule
from theano.tensor.linkers.tables import Table
from theano.tensor.loops_cgen import FUNCTIONS

HEADER, MATH = '"theano_loops.h"', "<math.h>"
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
    *("fill", "for", "if", "loops", "nan", "simdlen", "sizeof", "switch", "while"),
    *("PyErr_SetString", "THEANO_MACRO_MOD", "__builtin_inf"),
    *FUNCTIONS.values(),
}
CALLS = re.compile(r"\b(?:M_\w+|NAN|INFINITY|HUGE_VAL\w*|[A-Za-z_]\w*(?=\s*\())")


def needs_more(codes: Iterable[str]) -> bool:
    """Return whether code uses more of Python and NumPy than theano_loops.h has."""
    return not KNOWN.issuperset(UNKNOWN.findall("\n".join(codes)))


@dataclass(frozen=True)
class Loops:
    """Loops of an op: what they include, other code that they need, and their table."""

    headers: Sequence[str]
    support_code: Sequence[str]
    table: Table

    def need_no_other(self) -> bool:
        """Return whether headers are all that loops need, and those for functions."""
        return not self.support_code and set(self.headers) <= {MATH}

    def includes(self) -> list[str]:
        """Return what to include; not MATH, where nothing of it is used."""
        code = "\n".join([*self.support_code, self.table.loops, self.table.fill])
        known = WITHOUT_MATH.issuperset(CALLS.findall(code))
        return [*(each for each in self.headers if each != MATH or not known), HEADER]


class LoopsModule(DynamicModule):
    """A module that is made of the loops of an op."""

    def __init__(self, loops: Loops) -> None:
        """A module that is not finalized."""
        super().__init__()
        self.includes = loops.includes()
        for code in loops.support_code:
            self.add_support_code(code)
        self.table = loops.table

    def macros_left(self) -> tuple[str, ...]:
        """Return what code after it in one source must have before it too."""
        # <math.h> declares what modules without it do.
        return (*self.includes, *super().macros_left())

    def print_functions(self, stream: TextIO) -> None:
        """Write the op, and what makes a module of it, to a stream."""
        name = self.hash_placeholder
        print(
            f"""{self.table.code()}
extern "C" __attribute__((visibility("default")))
PyObject *PyInit_{name}(void) {{
    return theano_elemwise_module("{name}", &op);
}}""",
            file=stream,
        )
