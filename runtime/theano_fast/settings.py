"""Read the user's Theano flags from files, THEANO_FLAGS and a program, without importing Theano.

If a flag is set twice, the later setting wins, as in Theano's ``configparser.py``.
"""

import ast
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from theano_fast import rc
from theano_fast.porting import sources

FLAGS = "THEANO_FLAGS"


@dataclass(frozen=True)
class Setting:
    """A flag, its value as text, and its origin: "THEANO_FLAGS" or FILE:LINE."""

    flag: str
    value: str
    origin: str

    def to_json(self) -> dict[str, str]:
        """Return the setting as a JSON object."""
        return {"flag": self.flag, "value": self.value, "origin": self.origin}


def list_user_files(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the user's theanorc files in the order in which Theano reads them."""
    names = environ.get("THEANORC", "~/.theanorc").split(os.pathsep)
    return tuple(Path(name).expanduser() for name in names if name)


def read_users(
    program: Path | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[Setting, ...]:
    """Return the effective settings of the user's files, THEANO_FLAGS and a program.

    Raises:
        rc.RcError: a file cannot be read, or is not a theanorc.
        sources.SourceError: the program cannot be read, or is not Python.
    """
    settings = [setting for file in list_user_files(environ) for setting in _read_file(file)]
    of_program = list(_read_program(program)) if program else []
    # If the program sets THEANO_FLAGS, Theano does not see the variable's earlier value.
    if not any(setting.origin.endswith(FLAGS) for setting in of_program):
        settings += _parse_flags(environ.get(FLAGS, ""), FLAGS)
    settings += of_program
    return tuple({setting.flag: setting for setting in settings}.values())


def _read_file(file: Path) -> Iterator[Setting]:
    # Theano ignores a missing file.
    if not file.exists():
        return
    lines = file.read_text(errors="replace").splitlines()
    for flag, value in rc.read(file).items():
        yield Setting(flag, value, f"{file}:{_find_line(lines, flag)}")


def _find_line(lines: list[str], flag: str) -> int:
    """Return the number of the last line of a theanorc that sets a flag."""
    section, _, option = flag.rpartition(".")
    current_section, last = "", 0
    for number, line in enumerate(lines, 1):
        if line.startswith("["):
            current_section = line.strip().strip("[]")
        elif current_section in (section or "global", flag.removesuffix(f".{option}")):
            name = line.replace(":", "=").partition("=")[0].strip()
            last = number if name in (option, flag) else last
    return last


def _parse_flags(text: str, origin: str) -> Iterator[Setting]:
    words = shlex.shlex(text, posix=True)
    words.whitespace = ","
    words.whitespace_split = True
    try:
        pairs = [word.strip().partition("=") for word in words]
    except ValueError as error:
        raise rc.RcError(f"{origin} cannot be read: {error}: {text}") from error
    for flag, equals, value in pairs:
        if equals:
            yield Setting(flag, value, origin)


def _read_program(program: Path) -> Iterator[Setting]:
    """Yield the flags that a program sets in theano.config or os.environ as literals."""
    tree, _ = sources.parse(program)
    assignments = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    # ast.walk yields the statements of blocks after all statements outside of blocks.
    for node in sorted(assignments, key=lambda node: (node.lineno, node.col_offset)):
        if not isinstance(node.value, ast.Constant):
            continue
        origin, value = f"{program}:{node.lineno}", str(node.value.value)
        for target in map(ast.unparse, node.targets):
            if target in (f"os.environ['{FLAGS}']", f"environ['{FLAGS}']"):
                yield from _parse_flags(value, f"{origin}, {FLAGS}")
            elif target.startswith(("theano.config.", "config.")):
                yield Setting(target.partition("config.")[2], value, origin)
