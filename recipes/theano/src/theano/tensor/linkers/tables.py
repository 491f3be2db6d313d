"""What thunks_ext.cpp reads of an op whose loops are compiled alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from theano.tensor import thunks_ext


@dataclass(frozen=True)
class Table:
    """A theano_elemwise_op, see theano_loops.h, with C code in place of functions."""

    nd: int
    n_inputs: int
    n_outputs: int
    n_storages: int
    failure: int
    like: int
    storages: tuple[int, ...]
    types: tuple[int, ...]
    # The body of a function of C type theano_loops.
    loops: str
    overwritten: tuple[int, ...] = ()
    broadcast: tuple[str, ...] = ()
    next_to: bool = False
    reduced: str = ""
    type: int = 0
    # The body of a function of data and n.
    fill: str = ""
    not_empty: str = ""

    def functions(self, declaration: str, name: str) -> str:
        """Return C code of the functions: "loops" and "fill", followed by a name."""
        code = f"""
{declaration} int loops{name}(char *const *data, const npy_intp *sizes,
                 const npy_intp *strides) {{{self.loops}}}
"""
        if self.fill:
            code += f"{declaration} void fill{name}(char *data, npy_intp n) {{{self.fill}}}\n"
        return code

    def code(self) -> str:
        """Return C code that defines "op"."""

        def array(kind: str, name: str, values: Sequence[object]) -> str:
            return f"static const {kind} {name}[] = {{{', '.join(map(str, values))}}};\n"

        def string(value: str) -> str:
            return f'"{value}"' if value else "0"

        code = array("int", "storages", self.storages) + array("int", "types", self.types)
        if self.overwritten:
            code += array("int", "overwritten", self.overwritten)
            code += array("char *const", "broadcast", [f'"{each}"' for each in self.broadcast])
        fields = [
            *(self.nd, self.n_inputs, self.n_outputs, self.n_storages, self.failure, self.like),
            *("storages", "types"),
            *(("overwritten", "broadcast") if self.overwritten else (0, 0)),
            *("loops", int(self.next_to), string(self.reduced), self.type),
            *("fill" if self.fill else "0", string(self.not_empty)),
        ]
        return f"""{self.functions("static", "")}{code}static const theano_elemwise_op op = {{
    {", ".join(map(str, fields))}}};
"""

    def module(self, name: str, function: Callable[[str], int]) -> ModuleType:
        """Return the module of the op.

        Args:
            function: the address of "loops" or "fill".
        """
        op = Struct(
            *(self.nd, self.n_inputs, self.n_outputs, self.n_storages, self.failure, self.like),
            *map(integers, (self.storages, self.types, self.overwritten)),
            (ctypes.c_char_p * len(self.broadcast))(*map(str.encode, self.broadcast)),
            function("loops"),
            self.next_to,
            self.reduced.encode() or None,
            self.type,
            function("fill") if self.fill else None,
            self.not_empty.encode() or None,
        )
        # Thunks read the op, which do not keep the module.
        kept.append((op, name))
        return thunks_ext.module_of(name, ctypes.addressof(op))


kept: list[tuple[Struct, str]] = []


class Struct(ctypes.Structure):
    """A theano_elemwise_op."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("nd", "n_inputs", "n_outputs")),
        *((name, ctypes.c_int) for name in ("n_storages", "failure", "like")),
        *((name, ctypes.POINTER(ctypes.c_int)) for name in ("storages", "types", "overwritten")),
        ("broadcast", ctypes.POINTER(ctypes.c_char_p)),
        ("loops", ctypes.c_void_p),
        ("next_to", ctypes.c_int),
        ("reduced", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("fill", ctypes.c_void_p),
        ("not_empty", ctypes.c_char_p),
    )


def integers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int]:
    """Return an array of C."""
    return (ctypes.c_int * len(values))(*values)
