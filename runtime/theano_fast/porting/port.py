"""Implement ``theano-fast port``: convert Python 2 with lib2to3, and list lines to check by hand.

The command converts a file in memory, checks the result, and replaces the file atomically. It keeps
the original as FILE.bak. If FILE.bak exists, the command does not convert FILE again.
"""

import contextlib
import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from theano_fast.porting import rules, sources


@dataclass(frozen=True)
class Port:
    """A source file: its text before and after conversion, and the lines to check by hand."""

    file: Path
    before: str
    after: str
    lines: tuple[rules.Line, ...]

    @property
    def backup(self) -> Path:
        """The path of the original's backup."""
        return self.file.with_name(f"{self.file.name}.bak")

    @property
    def changed(self) -> bool:
        """Whether the conversion changed the text."""
        return self.before != self.after


def list_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files among paths, and the Python files below the directories among paths.

    Skip files and directories whose names begin with a dot.

    Raises:
        sources.SourceError: a path does not exist, or is a directory without a Python file.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(
                file
                for file in path.rglob("*.py")
                if file.is_file()
                and not any(part.startswith(".") for part in file.relative_to(path).parts)
            )
            if not inside:
                raise sources.SourceError(f"{path} has no Python file, *.py")
            files |= dict.fromkeys(inside)
        elif path.exists():
            files[path] = None
        else:
            raise sources.SourceError(f"{path} does not exist")
    return tuple(files)


def port_file(file: Path) -> Port:
    """Convert a file in memory; raises SourceError."""
    before = sources.read(file)
    after = before
    ported = file.with_name(f"{file.name}.bak").exists()
    try:
        if sources.is_python2(before) and not ported:
            after = sources.convert(before, (file.parent / "__init__.py").exists())
        return Port(file, before, after, rules.find_lines(sources.parse_text(after)))
    except SyntaxError as error:
        hint = f"; the original is {file.name}.bak" if ported else ""
        raise sources.SourceError(
            f"{file}:{error.lineno}: {error.msg}: correct this line, and run again{hint}"
        ) from error


def write(ported: Port) -> None:
    """Back up a file, and replace it atomically.

    Raises:
        sources.SourceError: the backup or the new file cannot be written. The file is unchanged.
    """
    new = None
    try:
        content = ported.file.read_bytes()
        _, encoding = sources.decode(content)
        shutil.copy2(ported.file, ported.backup)
        descriptor, name = tempfile.mkstemp(dir=ported.file.parent, prefix=".port-")
        new = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(ported.after.encode(encoding))
        shutil.copymode(ported.file, new)
        new.replace(ported.file)
    except (OSError, UnicodeEncodeError) as error:
        # With a backup, the next run would treat the file as already ported.
        for written in filter(None, (new, ported.backup)):
            # A read-only file system refuses this too.
            with contextlib.suppress(OSError):
                written.unlink()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise sources.SourceError(f"{ported.file} cannot be ported: {reason}") from error


def make_diff(ported: Port) -> Iterator[str]:
    """Yield the lines of a unified diff of the conversion."""
    before, after = ported.before.splitlines(), ported.after.splitlines()
    name = str(ported.file)
    yield from difflib.unified_diff(before, after, name, name, lineterm="")


def run(paths: Sequence[Path], dry: bool) -> Iterator[tuple[str, bool]]:
    """Port files, and yield (line to print, whether the line is an error).

    Args:
        paths: the files, and the directories with Python files, to port.
        dry: write nothing, and yield the conversions as diffs.
    """
    converted = to_check = 0
    for file in list_files(paths):
        try:
            ported = port_file(file)
            if ported.changed and not dry:
                write(ported)
        except sources.SourceError as error:
            yield str(error), True
            continue
        if dry:
            yield from ((line, False) for line in make_diff(ported))
        elif ported.changed:
            yield f"{file} is Python 3 now; the original is {ported.backup.name}", False
        converted += ported.changed
        to_check += len(ported.lines)
        yield from ((f"{file}:{line.number}: {line.advice}", False) for line in ported.lines)
    verb = "to convert" if dry else "converted"
    yield f"{converted} files {verb}, {to_check} lines to check by hand", False
