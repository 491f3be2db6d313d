"""Descriptions of ops for thunks_ext.cpp: theano_elemwise_op as C code or as a ctypes struct."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from theano import gof
from theano.tensor import thunks_ext

# The header that modules of loops include. It defines theano_elemwise_op.
LOOPS_H = (Path(gof.__file__).parent / "c_code" / "theano_loops.h").read_text()

# Maps the C types of theano_elemwise_op's fields to ctypes.
CTYPES: dict[str, Any] = {
    "int": ctypes.c_int,
    "const int *": ctypes.POINTER(ctypes.c_int),
    "const char *": ctypes.c_char_p,
    "const char *const *": ctypes.POINTER(ctypes.c_char_p),
    "theano_loops": ctypes.c_void_p,
    "theano_fill": ctypes.c_void_p,
}


def read_fields(header: str) -> list[tuple[str, Any]]:
    """Read the names and ctypes of theano_elemwise_op's fields from the header, in order."""
    _, _, body = header.partition("\nstruct theano_elemwise_op {")
    body, _, _ = body.partition("\n}")
    declaration = re.compile(r"^    (\w[\w *]*?) ?(\w+);$", re.MULTILINE)
    return [(name, CTYPES[kind]) for kind, name in declaration.findall(body)]


class Struct(ctypes.Structure):
    """The C struct theano_elemwise_op."""

    _fields_ = read_fields(LOOPS_H)


assert ctypes.sizeof(Struct) == thunks_ext.op_size, "op_descriptions.py and theano_loops.h differ"


class OpDescription(NamedTuple):
    """The fields of a theano_elemwise_op. theano_loops.h documents them.

    Where theano_elemwise_op has a function, this class has the C code of the function's body.
    """

    nd: int
    n_inputs: int
    n_outputs: int
    n_storages: int
    failure: int
    like: int
    storages: tuple[int, ...]
    types: tuple[int, ...]
    # The body of a C function of type theano_loops.
    loops: str
    overwritten: tuple[int, ...] = ()
    broadcast: tuple[str, ...] = ()
    assumes_contiguous: bool = False
    reduced: str = ""
    type: int = 0
    # The body of a C function of type theano_fill.
    fill: str = ""
    not_empty: str = ""

    def format_functions(self, declaration: str, name: str) -> str:
        """Return C code of the functions "loops" and "fill".

        Args:
            declaration: the beginning of their declarations, such as "static".
            name: the suffix of their names.
        """
        code = f"""
{declaration} int loops{name}(char *const *data, const npy_intp *sizes,
                 const npy_intp *strides) {{{self.loops}}}
"""
        if self.fill:
            code += f"{declaration} void fill{name}(char *data, npy_intp n) {{{self.fill}}}\n"
        return code

    def format_code(self) -> str:
        """Return C code that defines the functions and the struct "op"."""

        def array(kind: str, name: str, values: Sequence[object]) -> str:
            return f"static const {kind} {name}[] = {{{', '.join(map(str, values))}}};\n"

        def string(value: str) -> str:
            return f'"{value}"' if value else "0"

        code = array("int", "storages", self.storages) + array("int", "types", self.types)
        if self.overwritten:
            code += array("int", "overwritten", self.overwritten)
            patterns = [f'"{pattern}"' for pattern in self.broadcast]
            code += array("char *const", "broadcast", patterns)
        values = {
            **{name: str(int(getattr(self, name))) for name in INTEGERS},
            "storages": "storages",
            "types": "types",
            "overwritten": "overwritten" if self.overwritten else "0",
            "broadcast": "broadcast" if self.overwritten else "0",
            "loops": "loops",
            "reduced": string(self.reduced),
            "fill": "fill" if self.fill else "0",
            "not_empty": string(self.not_empty),
        }
        code = self.format_functions("static", "") + code
        return f"""{code}static const theano_elemwise_op op = {{
    {", ".join(values[name] for name, _ in Struct._fields_)}}};
"""

    def make_struct(self, address: Callable[[str], int]) -> Struct:
        """Make the struct of the op from compiled functions in memory.

        Args:
            address: a function that returns the address of the function "loops" or "fill".
        """
        return Struct(
            **{name: getattr(self, name) for name in INTEGERS},
            storages=make_int_array(self.storages),
            types=make_int_array(self.types),
            overwritten=make_int_array(self.overwritten),
            broadcast=(ctypes.c_char_p * len(self.broadcast))(*map(str.encode, self.broadcast)),
            loops=address("loops"),
            reduced=self.reduced.encode() or None,
            fill=address("fill") if self.fill else None,
            not_empty=self.not_empty.encode() or None,
        )

    def make_module(self, name: str, address: Callable[[str], int]) -> ModuleType:
        """Make a Python module for the op from compiled functions in memory.

        Args:
            name: the name of the module.
            address: see make_struct.
        """
        op = self.make_struct(address)
        # Keep the struct alive: thunks read it, but hold no reference to the module.
        live_ops.append((op, name))
        return thunks_ext.module_of(name, ctypes.addressof(op))


# The names of the fields of type int.
INTEGERS = [name for name, kind in Struct._fields_ if kind is ctypes.c_int]
# The structs and names to which thunks point. They live as long as the process.
live_ops: list[tuple[Struct, str]] = []


def make_int_array(values: Sequence[int]) -> ctypes.Array[ctypes.c_int]:
    """Copy integers into a C array of int."""
    return (ctypes.c_int * len(values))(*values)
