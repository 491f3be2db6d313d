"""What a stack is, read from stacks.toml."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from builder.common import paths
from builder.common.errors import ConfigurationError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Stack:
    """One value on each axis, under a name.

    Attributes:
        amdlibm_archive: the SHA-256 of the release archive of AMD's library that its amdlibm is
            made of; empty where that is the open one.
    """

    name: str
    theano: str
    python: str
    blas: str
    libm: str
    device: str
    amdlibm_archive: str = ""

    @property
    def axes(self) -> dict[str, str]:
        """The value on each axis, by the axis' name."""
        values = asdict(self)
        return {axis: values[axis] for axis in AXES}


AXES = tuple(field.name for field in fields(Stack) if field.name not in ("name", "amdlibm_archive"))
# Ends the name of a stack with AMD's own library.
AOCL = "-aocl"


def load_all(file: Path = paths.STACKS) -> tuple[Stack, ...]:
    """All stacks, in the order of the file.

    Raises:
        ConfigurationError: an unknown or missing key, or a value its axis does not list.
    """
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    if set(table) != {"axes", "stacks"} or set(table["axes"]) != set(AXES):
        raise ConfigurationError(
            f"{file}: expected the tables [axes] ({', '.join(AXES)}) and [stacks.<name>]"
        )
    return tuple(_stack(file, name, row, table["axes"]) for name, row in table["stacks"].items())


def _stack(file: Path, name: str, row: dict[str, str], axes: dict[str, list[str]]) -> Stack:
    if set(row) != set(AXES):
        raise ConfigurationError(
            f"{file}: stack {name} must set each axis once: {', '.join(AXES)}; it sets "
            f"{', '.join(row) or 'none'}"
        )
    for axis, value in row.items():
        if value not in axes[axis]:
            raise ConfigurationError(
                f"{file}: stack {name}: {axis} = {value!r} is not one of {', '.join(axes[axis])}"
            )
    return Stack(name=name, **row)


def load(name: str, file: Path = paths.STACKS) -> Stack:
    """The stack called ``name``.

    Raises:
        UsageError: there is none; the message lists those there are.
    """
    stacks = {stack.name: stack for stack in load_all(file)}
    if name not in stacks:
        raise UsageError(f"unknown stack {name!r}", f"choose one of: {', '.join(stacks)}")
    return stacks[name]


def with_amdlibm(stack: Stack, archive: str) -> Stack:
    """The stack with AMD's own library, from the archive of that SHA-256.

    It has a name of its own, and so have its environment, lock, report and image.

    Raises:
        UsageError: the stack has no amdlibm.
    """
    if stack.libm != "amdlibm":
        fitting = ", ".join(other.name for other in load_all() if other.libm == "amdlibm")
        raise UsageError(
            f"--amdlibm-archive: the libm of stack {stack.name} is {stack.libm}",
            f"choose one of: {fitting}",
        )
    return replace(stack, name=stack.name + AOCL, amdlibm_archive=archive)


def flags(name: str) -> str:
    """The flags by which a task is told the stack called ``name``."""
    row = name.removesuffix(AOCL)
    return f"--stack={row}" if row == name else f"--stack={row} --amdlibm-archive=FILE"
