"""What a stack is, read from stacks.toml."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

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
        programs: the match specs of what is installed beside it.
    """

    name: str
    theano: str
    python: str
    blas: str
    libm: str
    device: str
    amdlibm_archive: str = ""
    programs: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The name without those of programs."""
        return self.name.partition(WITH)[0]

    @property
    def old(self) -> bool:
        """Whether it has Python 2.7: the project's own programs are for Python 3."""
        return self.python == "2.7"

    @property
    def axes(self) -> dict[str, str]:
        """The value on each axis, by the axis' name."""
        values = asdict(self)
        return {axis: values[axis] for axis in AXES}


AXES = ("theano", "python", "blas", "libm", "device")
# Ends the name of a stack with AMD's own library.
AOCL = "-aocl"
# Is between that name and those of programs.
WITH = "+"


def load_all(file: Path = paths.STACKS) -> tuple[Stack, ...]:
    """All stacks, in the order of the file.

    Raises:
        ConfigurationError: an unknown or missing key, or a value its axis does not list.
    """
    return _stacks(file, _read(file))


def _stacks(file: Path, table: dict[str, Any]) -> tuple[Stack, ...]:
    return tuple(_stack(file, name, row, table["axes"]) for name, row in table["stacks"].items())


def _read(file: Path) -> dict[str, Any]:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    if set(table) != {"axes", "stacks", "programs"} or set(table["axes"]) != set(AXES):
        raise ConfigurationError(
            f"{file}: expected the tables [axes] ({', '.join(AXES)}), [stacks.<name>] and "
            "[programs]"
        )
    return table


def _stack(file: Path, name: str, row: dict[str, Any], axes: dict[str, list[str]]) -> Stack:
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


def programs() -> tuple[str, ...]:
    """What can be installed beside a stack."""
    return tuple(_read(paths.STACKS)["programs"])


def tests(program: str) -> str:
    """The file of a program's tests, which all its versions share: keras' are keras-2.2's."""
    return f"tests/programs/test_{program.partition('-')[0]}.py"


def canonical(name: str) -> str:
    """A name with its programs in order, each once."""
    base, *programs = name.split(WITH)
    return WITH.join([base, *sorted(set(programs))])


def load(name: str, file: Path = paths.STACKS) -> Stack:
    """The stack called ``name``, which may end with programs: ``mkl+keras+pymc3``.

    It has a name, an environment, a lock, a report and an image of its own then.

    Raises:
        UsageError: there is none, and the message lists those there are; or programs are for
            another Python, or two versions of one.
    """
    name = canonical(name)
    base, *wanted = name.split(WITH)
    table = _read(file)
    stacks = {stack.name: stack for stack in _stacks(file, table)}
    if base not in stacks:
        raise UsageError(f"unknown stack {base!r}", f"choose one of: {', '.join(stacks)}")
    known = table["programs"]
    if unknown := [program for program in wanted if program not in known]:
        raise UsageError(
            f"unknown program {', '.join(unknown)}", f"choose among: {', '.join(known)}"
        )
    if wanted and stacks[base].old:
        raise UsageError(
            f"--with: programs are built for Python 3, and the stack {base} has 2.7",
            f"./invoke build --stack={base}, then build/envs/{base}/bin/pip install NAME==VERSION",
        )
    if len({tests(program) for program in wanted}) < len(wanted):
        raise UsageError(
            f"--with={','.join(wanted)}: an environment has one version of a program",
            "choose one, or build two environments",
        )
    specs = tuple(spec for program in wanted for spec in known[program])
    return replace(stacks[base], name=name, programs=specs)


def of_today(name: str, what: str, instead: str = "") -> Stack:
    """The stack called ``name``, if it has Python 3.

    Args:
        what: it is wanted for.
        instead: what serves with Python 2.7.

    Raises:
        UsageError: there is none, or it has Python 2.7.
    """
    stack = load(name)
    if stack.old:
        fitting = ", ".join(other.name for other in load_all() if not other.old)
        raise UsageError(
            f"{what} takes Python 3, and the stack {name} has 2.7",
            instead or f"choose one of: {fitting}",
        )
    return stack


def with_amdlibm(stack: Stack, archive: str) -> Stack:
    """The stack with AMD's own library, from the archive of that SHA-256.

    It has a name of its own, and so have its environment, lock, report and image.

    Raises:
        UsageError: the stack has no amdlibm, or one whose Theano knows the open one only.
    """
    if stack.libm != "amdlibm" or stack.old:
        fitting = ", ".join(
            other.name for other in load_all() if other.libm == "amdlibm" and not other.old
        )
        raise UsageError(
            f"--amdlibm-archive: the libm of stack {stack.name} is "
            + ("the open amdlibm, whose functions its Theano calls" if stack.old else stack.libm),
            f"choose one of: {fitting}",
        )
    name = stack.base + AOCL + stack.name.removeprefix(stack.base)
    return replace(stack, name=name, amdlibm_archive=archive)


def flags(name: str) -> str:
    """The flags by which a task is told the stack called ``name``."""
    row = name.replace(AOCL, "")
    return f"--stack={row}" if row == name else f"--stack={row} --amdlibm-archive=FILE"
