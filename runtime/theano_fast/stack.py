"""The stack an environment says it is: ``<sys.prefix>/etc/theano-fast.toml``.

The metapackage of a stack writes the file::

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
    """The environment does not say what it is, so that nothing can be proved of it."""


@dataclass(frozen=True)
class Stack:
    """A stack's name and its values on the axes; :data:`AXES` are always among them."""

    name: str
    axes: Mapping[str, str]


def load(prefix: str | Path = sys.prefix) -> Stack:
    """Read the stack of the environment at prefix; raises StackError."""
    path = Path(prefix) / FILE
    try:
        return parse(path.read_text())
    except FileNotFoundError:
        raise StackError(
            f"{path} does not exist: this Python is not in an environment of a theano-fast stack;"
            " install the metapackage of one, or run theano-fast of such an environment"
        ) from None
    except (OSError, ValueError) as error:
        raise StackError(f"{path} cannot be read: {error}") from error


def beside(prefix: str | Path = sys.prefix) -> tuple[Path, ...]:
    """Return the environment at prefix, and those of stacks of its Python in the same folder.

    They are sorted. Another Python runs neither theano-fast nor, maybe, its user's program.

    Raises:
        StackError: one of them does not say what it is.
    """
    place = Path(prefix).resolve()
    python = load(place).axes["python"]
    stacks = (path for path in place.parent.iterdir() if (path / FILE).exists())
    return tuple(sorted(path for path in stacks if load(path).axes["python"] == python))


def parse(text: str) -> Stack:
    """Make a stack of the file's text; raises ValueError naming what is wrong."""
    table = tomllib.loads(text)
    if set(table) != {"stack", "axes"}:
        raise ValueError(f"its keys must be 'axes' and 'stack', not {sorted(table)}")
    name, axes = table["stack"], table["axes"]
    if not isinstance(name, str) or not isinstance(axes, dict):
        raise ValueError("'stack' must be a string and 'axes' a table")
    if missing := AXES - set(axes):
        raise ValueError(f"the axes {sorted(missing)} are missing")
    if wrong := sorted(axis for axis, value in axes.items() if not isinstance(value, str)):
        raise ValueError(f"the axes {wrong} must be strings")
    return Stack(name, axes)
