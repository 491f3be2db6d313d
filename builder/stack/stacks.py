"""Read and validate stacks.toml: the stacks, and the programs that can be installed with them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from builder.common import paths
from builder.common.errors import ConfigurationError, UsageError
from builder.common.files import read_toml

AXES = ("theano", "python", "blas", "libm", "device")
# Suffix of the name of a stack with AMD's release of AOCL-LibM, such as openblas-amdlibm-aocl.
AOCL = "-aocl"
# Separates the name of a stack from the names of its programs.
WITH = "+"


@dataclass(frozen=True)
class Stack:
    """A stack: a name, and a value on each axis.

    Attributes:
        amdlibm_archive: the SHA-256 of the release archive of AOCL-LibM; empty if the stack uses
            the open-source amdlibm or no amdlibm.
        programs: the match specs of the programs that are installed with the stack.
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
        """The name without the names of programs: ``mkl`` for ``mkl+keras``."""
        return self.name.partition(WITH)[0]

    @property
    def has_python_2(self) -> bool:
        """Whether the stack has Python 2.7. Most of this project's programs need Python 3."""
        return self.python == "2.7"

    @property
    def axes(self) -> dict[str, str]:
        """The value on each axis, by the name of the axis."""
        values = asdict(self)
        return {axis: values[axis] for axis in AXES}


def load_all(file: Path = paths.STACKS) -> tuple[Stack, ...]:
    """Load all stacks, in the order of the file.

    Raises:
        ConfigurationError: an unknown or missing key, or a value that its axis does not list.
    """
    return _parse_stacks(file, _read_file(file))


def load(name: str, file: Path = paths.STACKS) -> Stack:
    """Load a stack. Its name may end with names of programs: ``mkl+keras+pymc3``.

    A stack with programs has its own environment, lock file, report and image, under this name.

    Raises:
        UsageError: an unknown stack or program, programs for a stack with Python 2.7, or two
            versions of a program.
    """
    name = normalize_name(name)
    base, *programs = name.split(WITH)
    table = _read_file(file)
    stacks = {stack.name: stack for stack in _parse_stacks(file, table)}
    if base not in stacks:
        raise UsageError(f"unknown stack {base!r}", f"choose one of: {', '.join(stacks)}")
    specs: dict[str, list[str]] = table["programs"]
    if unknown := [program for program in programs if program not in specs]:
        raise UsageError(
            f"unknown program {', '.join(unknown)}", f"choose among: {', '.join(specs)}"
        )
    if programs and stacks[base].has_python_2:
        raise UsageError(
            f"--with: the programs require Python 3, but stack {base} has Python 2.7",
            f"./invoke build --stack={base}, then build/envs/{base}/bin/pip install NAME==VERSION",
        )
    if len({find_test_file(program) for program in programs}) < len(programs):
        raise UsageError(
            f"--with={','.join(programs)}: an environment can contain only one version of a"
            " program",
            "choose one version, or build two environments",
        )
    return replace(
        stacks[base],
        name=name,
        programs=tuple(spec for program in programs for spec in specs[program]),
    )


def list_programs() -> tuple[str, ...]:
    """Return the names of the programs that can be installed with a stack."""
    return tuple(_read_file(paths.STACKS)["programs"])


def find_test_file(program: str) -> str:
    """Return the path of a program's tests. All versions, such as keras-2.2, share the tests."""
    return f"tests/programs/test_{program.partition('-')[0]}.py"


def normalize_name(name: str) -> str:
    """Sort the programs in the name of a stack, and remove duplicates."""
    base, *programs = name.split(WITH)
    return WITH.join([base, *sorted(set(programs))])


def load_with_python_3(name: str, feature: str, alternative: str = "") -> Stack:
    """Load a stack and require that it has Python 3.

    Args:
        name: the name of the stack.
        feature: the feature that requires Python 3: the subject of the error message.
        alternative: the hint of the error; by default a list of the stacks with Python 3.

    Raises:
        UsageError: the stack is unknown, or has Python 2.7.
    """
    stack = load(name)
    if stack.has_python_2:
        suitable = ", ".join(other.name for other in load_all() if not other.has_python_2)
        raise UsageError(
            f"{feature} requires Python 3, but stack {name} has Python 2.7",
            alternative or f"choose one of: {suitable}",
        )
    return stack


def replace_amdlibm(stack: Stack, archive: str) -> Stack:
    """Return the stack with AMD's release of AOCL-LibM instead of the open-source amdlibm.

    The new stack has its own name, and therefore its own environment, lock file, report and image.

    Args:
        archive: the SHA-256 of the release archive.

    Raises:
        UsageError: the stack has no amdlibm, or it has Theano 0.8.2, which can call the open-source
            amdlibm only.
    """
    if stack.libm != "amdlibm" or stack.has_python_2:
        suitable = ", ".join(
            other.name for other in load_all() if other.libm == "amdlibm" and not other.has_python_2
        )
        raise UsageError(
            f"--amdlibm-archive: the libm of stack {stack.name} is "
            + ("the open-source amdlibm only" if stack.has_python_2 else stack.libm),
            f"choose one of: {suitable}",
        )
    name = stack.base + AOCL + stack.name.removeprefix(stack.base)
    return replace(stack, name=name, amdlibm_archive=archive)


def format_flags(name: str) -> str:
    """Return the flags with which a task selects the stack ``name``, such as ``--stack=mkl``."""
    row = name.replace(AOCL, "")
    return f"--stack={row}" if row == name else f"--stack={row} --amdlibm-archive=FILE"


def _read_file(file: Path) -> dict[str, Any]:
    table = read_toml(file)
    if set(table) != {"axes", "stacks", "programs"} or set(table["axes"]) != set(AXES):
        raise ConfigurationError(
            f"{file}: expected the tables [axes] ({', '.join(AXES)}), [stacks.<name>] and "
            "[programs]"
        )
    return table


def _parse_stacks(file: Path, table: dict[str, Any]) -> tuple[Stack, ...]:
    axes = table["axes"]
    return tuple(_parse_stack(file, name, row, axes) for name, row in table["stacks"].items())


def _parse_stack(file: Path, name: str, row: dict[str, Any], axes: dict[str, list[str]]) -> Stack:
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
