"""Read the stack of an environment from ``<sys.base_prefix>/etc/theano-fast.toml``.

A virtual environment has the stack of the environment whose Python created it.

The stack's metapackage contains the file, for example::

    stack = "openblas"

    [axes]
    blas = "openblas"
    device = "cpu"
    libm = "system"
    python = "3.11"
"""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path("etc", "theano-fast.toml")
AXES = frozenset({"blas", "device", "libm", "python"})


class StackError(Exception):
    """The environment has no file that names its stack, or the file cannot be read."""


@dataclass(frozen=True)
class Stack:
    """A stack's name, and its value on each axis; the axes include :data:`AXES`."""

    name: str
    axes: Mapping[str, str]


def load(prefix: str | Path = sys.base_prefix) -> Stack:
    """Read the stack of the environment at prefix; raises StackError."""
    path = Path(prefix) / FILE
    try:
        return parse(path.read_text())
    except FileNotFoundError:
        venv = ""
        if sys.prefix != sys.base_prefix:
            venv = f", and the virtual environment {sys.prefix} was made with its Python"
        raise StackError(
            f"{path} does not exist: {sys.base_prefix} contains no theano-fast stack{venv}; run the"
            " theano-fast of an environment that contains a stack, or make a virtual environment"
            " with its bin/python -m venv DIR"
        ) from None
    except (OSError, ValueError) as error:
        raise StackError(f"{path} cannot be read: {error}") from error


def find_siblings(prefix: str | Path = sys.base_prefix) -> tuple[Path, ...]:
    """Return the sorted prefixes of the stacks in the folder of ``prefix``, including ``prefix``.

    Omit stacks with other Python versions, because they may not run the user's program.

    Raises:
        StackError: a stack in the folder cannot be read.
    """
    own = Path(prefix).resolve()
    python = load(own).axes["python"]
    stacks = (path for path in own.parent.iterdir() if (path / FILE).exists())
    return tuple(sorted(path for path in stacks if load(path).axes["python"] == python))


def parse(text: str) -> Stack:
    """Parse the text of the file; raises ValueError with a message that names the mistake."""
    table = tomllib.loads(text)
    if set(table) != {"stack", "axes"}:
        raise ValueError(f"its keys must be 'axes' and 'stack', not {sorted(table)}")
    name, axes = table["stack"], table["axes"]
    if not isinstance(name, str) or not isinstance(axes, dict):
        raise ValueError("'stack' must be a string and 'axes' a table")
    if missing := AXES - set(axes):
        raise ValueError(f"the keys {sorted(missing)} are missing in the table 'axes'")
    if wrong := sorted(axis for axis, value in axes.items() if not isinstance(value, str)):
        raise ValueError(f"the axes {wrong} must be strings")
    return Stack(name, axes)
