"""Says what is done: lines that stay, and on a terminal one line that changes below them."""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from builder.common import complaints

WIDEST_TABLE = 200
# Seconds between plain lines that tell how far a build is.
PACE = 60
SOURCE = re.compile(r"[\w+-]+\.(?:c|cc|cpp|cxx|C|f|f90|F|F90|for|S|s|pyx|py)(?!\w)")
console = Console(highlight=False, soft_wrap=True)


class Level(enum.Enum):
    """How much is said: errors and the last line, a line for each stage, or the logs too."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_level = Level.NORMAL


def set_level(level: Level) -> None:
    """Choose how much this process says from here on."""
    global _level  # noqa: PLW0603 (as the console is one, and everybody's)
    _level = level


def verbose() -> bool:
    """Whether logs are to be shown."""
    return _level is Level.VERBOSE


def say(message: str) -> None:
    """Print one line, unless errors and the last line are all that is to be said."""
    if _level is not Level.QUIET:
        console.print(message, markup=False)


def conclude(message: str) -> None:
    """Print the line that tells how a command ended."""
    console.print(message, markup=False)


def interactive() -> bool:
    """Whether a line can be changed where this writes: FORCE_COLOR makes no terminal of a file."""
    return console.file.isatty() and not console.is_dumb_terminal


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, in full: a long line wraps, but a cell that is cut is lost."""
    drawn = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        drawn.add_row(*row)
    # Not print's argument: of it and the terminal's width, 80 without one, the smaller counts.
    Console(width=WIDEST_TABLE, highlight=False).print(drawn, crop=False)


def seconds(duration: float) -> str:
    """A duration in seconds as m:ss."""
    minutes, rest = divmod(int(duration), 60)
    return f"{minutes}:{rest:02}"


def about(duration: float) -> str:
    """A duration that is known roughly, in seconds or minutes."""
    return f"{duration:.0f} s" if duration < 90 else f"{duration / 60:.0f} min"


def left(done: int, total: int, started: float) -> str:
    """How long the rest of a task may take, of which some parts are done; "" of none or of all.

    Args:
        started: when it began, of time.monotonic.
    """
    if not 0 < done < total:
        return ""
    return f", about {about((time.monotonic() - started) / done * (total - done))} left"


def size(megabytes: float) -> str:
    """An amount of MB."""
    if megabytes < 1:
        return "less than 1 MB"
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


def place(path: Path) -> str:
    """A path as the user would type it: below the working directory without that."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def last_line(log: Path) -> str:
    """The last line a build has written to its log, without reading the whole of it."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 2000))
            lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return complaints.plain(lines[-1]).strip() if lines else ""


def compiling(log: Path) -> str:
    """The file that a build is compiling, as far as its log's last line tells."""
    found = SOURCE.findall(last_line(log))
    return found[-1] if found else ""


class _Changing:
    """What rich asks for a line, again and again."""

    def __init__(self, line: Callable[[], str]) -> None:
        self.line = line

    def __rich__(self) -> Text:
        return Text(self.line(), no_wrap=True, overflow="ellipsis")


@contextmanager
def shown(line: Callable[[], str]) -> Iterator[None]:
    """Show a line that changes while the block runs, where there is a terminal to draw on.

    Args:
        line: tells it, from a thread of its own.
    """
    if not interactive() or _level is Level.QUIET:
        yield
        return
    with Live(_Changing(line), console=console, refresh_per_second=2, transient=True):
        yield


class Progress:
    """The recipes under way, of ``total``."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._running: dict[str, tuple[float, Path]] = {}
        self._poured: dict[Path, int] = {}
        self._told = time.monotonic()

    def started(self, name: str, log: Path) -> None:
        """A recipe's build began; its output goes to ``log``."""
        self._running = {**self._running, name: (time.monotonic(), log)}
        self._poured[log] = 0
        if not interactive():
            say(f"building {name}")

    def finished(self, name: str, cpu_seconds: float) -> None:
        """A recipe's build ended well."""
        self.pour()
        began, _ = self._running[name]
        # Not changed but replaced: a thread looks at it.
        self._running = {other: row for other, row in self._running.items() if other != name}
        self.done += 1
        if not interactive() or verbose():
            elapsed = seconds(time.monotonic() - began)
            say(f"built    {name} ({self.done}/{self.total}, {elapsed}, {cpu_seconds:.0f} CPU s)")

    def line(self) -> str:
        """How far the build is, and what is being compiled."""
        now = [
            f"{name} ({file})" if (file := compiling(log)) else name
            for name, (_, log) in self._running.items()
        ]
        return ": ".join([f"{self.done} of {self.total} built", *filter(None, [", ".join(now)])])

    def tick(self, line: Callable[[], str]) -> None:
        """Now and then: where logs are shown, what is new in them; without a terminal, a line."""
        self.pour()
        if not interactive() and time.monotonic() - self._told >= PACE:
            self._told = time.monotonic()
            say(line())

    def pour(self) -> None:
        """Where logs are shown, say what is new in those of the recipes under way."""
        if not verbose():
            return
        for name, (_, log) in self._running.items():
            try:
                with log.open("rb") as stream:
                    stream.seek(self._poured[log])
                    # What has no end yet is left for the next time.
                    whole, end, _ = stream.read().rpartition(b"\n")
            except OSError:
                continue
            self._poured[log] += len(whole) + len(end)
            lines = whole.decode("utf-8", "replace").splitlines()
            if texts := [text for line in lines if (text := complaints.plain(line))]:
                say("\n".join(f"{name} | {text}" for text in texts))
