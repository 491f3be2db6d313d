"""Which Theano flags are set, and where: by files, THEANO_FLAGS and a program, read without Theano.

The later of two settings of one flag holds, as in Theano's ``configparser.py``.
"""

import ast
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from theano_fast import rc

FLAGS = "THEANO_FLAGS"


@dataclass(frozen=True)
class Setting:
    """A flag, its value as text, and the place that sets it: FLAGS, or FILE:LINE."""

    flag: str
    value: str
    place: str


def user_files(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the files that Theano reads after the environment's own, first to last."""
    names = environ.get("THEANORC", "~/.theanorc").split(os.pathsep)
    return tuple(Path(name).expanduser() for name in names if name)


def stack_file(prefix: str | Path = sys.prefix) -> Path:
    """Return the environment's own file."""
    return Path(prefix, "etc", "theanorc")


def users(
    program: Path | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[Setting, ...]:
    """Return what the user's files, THEANO_FLAGS and a program set: each flag's that holds.

    Raises:
        rc.RcError: a file cannot be read, or is no theanorc or program.
    """
    found = [setting for file in user_files(environ) for setting in _of_file(file)]
    its_own = list(_of_program(program)) if program else []
    if not any(setting.place.endswith(FLAGS) for setting in its_own):
        found += _of_flags(environ.get(FLAGS, ""), FLAGS)
    found += its_own
    return tuple({setting.flag: setting for setting in found}.values())


def _of_file(file: Path) -> Iterator[Setting]:
    # Theano passes over a file that is not there.
    if not file.exists():
        return
    lines = file.read_text(errors="replace").splitlines()
    for flag, value in rc.read(file).items():
        yield Setting(flag, value, f"{file}:{_line(lines, flag)}")


def _line(lines: list[str], flag: str) -> int:
    """Return the number of the line that sets a flag of a theanorc."""
    section, _, option = flag.rpartition(".")
    within, found = "", 0
    for number, line in enumerate(lines, 1):
        if line.startswith("["):
            within = line.strip().strip("[]")
        elif within in (section or "global", flag.removesuffix(f".{option}")):
            name = line.replace(":", "=").partition("=")[0].strip()
            found = number if name in (option, flag) else found
    return found


def _of_flags(text: str, place: str) -> Iterator[Setting]:
    words = shlex.shlex(text, posix=True)
    words.whitespace = ","
    words.whitespace_split = True
    try:
        pairs = [word.strip().partition("=") for word in words]
    except ValueError as error:
        raise rc.RcError(f"{place} cannot be read: {error}: {text}") from error
    for flag, equals, value in pairs:
        if equals:
            yield Setting(flag, value, place)


def _of_program(program: Path) -> Iterator[Setting]:
    """Yield what literals in a program's source set: theano.config.FLAG, os.environ's FLAGS."""
    try:
        tree = ast.parse(program.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise rc.RcError(f"{program} cannot be read as a program: {error}") from error
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        place, value = f"{program}:{node.lineno}", str(node.value.value)
        for target in map(ast.unparse, node.targets):
            if target in (f"os.environ['{FLAGS}']", f"environ['{FLAGS}']"):
                yield from _of_flags(value, f"{place}, {FLAGS}")
            elif target.startswith(("theano.config.", "config.")):
                yield Setting(target.partition("config.")[2], value, place)
