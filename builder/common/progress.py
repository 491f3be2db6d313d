"""Print the progress of a command: plain lines, and a live line where there is a terminal."""

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

from builder.common import log_excerpt

TABLE_WIDTH = 200
# Seconds between progress lines without a terminal.
LINE_INTERVAL = 60
SOURCE_FILE = re.compile(r"[\w+-]+\.(?:c|cc|cpp|cxx|C|f|f90|F|F90|for|S|s|pyx|py)(?!\w)")
console = Console(highlight=False, soft_wrap=True)


class Level(enum.Enum):
    """The amount of output: errors and the result; a line for each stage; the logs too."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_level = Level.NORMAL


def set_level(level: Level) -> None:
    """Set the amount of output of this process."""
    global _level  # noqa: PLW0603 (the level is for the whole process, like the console)
    _level = level


def is_verbose() -> bool:
    """Return whether the logs are shown."""
    return _level is Level.VERBOSE


def say(message: str) -> None:
    """Print a message, except at the level QUIET."""
    if _level is not Level.QUIET:
        console.print(message, markup=False)


def conclude(message: str) -> None:
    """Print the result of a command, at every level."""
    console.print(message, markup=False)


def is_interactive() -> bool:
    """Return whether the console can change a line that it wrote.

    Do not use rich's own attribute: FORCE_COLOR makes rich treat a file as a terminal.
    """
    return console.file.isatty() and not console.is_dumb_terminal


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without cutting any cell; the terminal wraps long lines."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    # Set the console's width. The argument ``width`` of print cannot exceed the terminal's width,
    # which is 80 columns without a terminal.
    Console(width=TABLE_WIDTH, highlight=False).print(table, crop=False)


def format_duration(seconds: float) -> str:
    """Format seconds as ``m:ss``."""
    minutes, remainder = divmod(int(seconds), 60)
    return f"{minutes}:{remainder:02}"


def format_estimate(seconds: float) -> str:
    """Format an estimated duration in whole seconds below 90 s, else in whole minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def format_time_left(done: int, total: int, started: float) -> str:
    """Estimate the time left, as ``", about 3 min left"``; return "" if it is unknown or 0.

    Args:
        done: the number of parts that are done.
        total: the number of all parts.
        started: the value of time.monotonic() at the start, in seconds.
    """
    if not 0 < done < total:
        return ""
    seconds = (time.monotonic() - started) / done * (total - done)
    return f", about {format_estimate(seconds)} left"


def format_size(megabytes: float) -> str:
    """Format a size in MB, or in GB from 1000 MB."""
    if megabytes < 1:
        return "less than 1 MB"
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


def display_path(path: Path) -> str:
    """Format a path as the user would type it: relative if below the working directory."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def read_last_line(log: Path) -> str:
    """Read the last line of a log without reading all of it; "" if there is none."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 2000))
            lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return log_excerpt.strip_control_sequences(lines[-1]).strip() if lines else ""


def find_compiled_file(log: Path) -> str:
    """Find the name of the source file in the last line of a build's log; "" if there is none."""
    names = SOURCE_FILE.findall(read_last_line(log))
    return names[-1] if names else ""


class _LiveLine:
    """A rich renderable that computes its text at each refresh."""

    def __init__(self, describe: Callable[[], str]) -> None:
        self._describe = describe

    def __rich__(self) -> Text:
        return Text(self._describe(), no_wrap=True, overflow="ellipsis")


@contextmanager
def show_live_line(describe: Callable[[], str]) -> Iterator[None]:
    """Show a line that is refreshed while the block runs, if there is a terminal.

    Args:
        describe: returns the text of the line; called from another thread.
    """
    if not is_interactive() or _level is Level.QUIET:
        yield
        return
    with Live(_LiveLine(describe), console=console, refresh_per_second=2, transient=True):
        yield


class BuildProgress:
    """The progress of building ``total`` recipes."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        # Start time and log of each recipe that is being built.
        self._running: dict[str, tuple[float, Path]] = {}
        # Bytes of each log that were shown.
        self._shown_bytes: dict[Path, int] = {}
        self._last_line_time = time.monotonic()

    def start(self, name: str, log: Path) -> None:
        """Record that the build of a recipe began, with its output in ``log``."""
        self._running = {**self._running, name: (time.monotonic(), log)}
        self._shown_bytes[log] = 0
        if not is_interactive():
            say(f"building {name}")

    def finish(self, name: str, cpu_seconds: float) -> None:
        """Record that the build of a recipe succeeded."""
        self.show_new_log_lines()
        began, _ = self._running[name]
        # Replace the dictionary, do not change it: another thread iterates over it.
        self._running = {other: row for other, row in self._running.items() if other != name}
        self.done += 1
        if not is_interactive() or is_verbose():
            elapsed = format_duration(time.monotonic() - began)
            say(f"built    {name} ({self.done}/{self.total}, {elapsed}, {cpu_seconds:.0f} CPU s)")

    def describe(self) -> str:
        """Describe the number of recipes built and the files that are being compiled."""
        running = ", ".join(
            f"{name} ({file})" if (file := find_compiled_file(log)) else name
            for name, (_, log) in self._running.items()
        )
        return f"{self.done} of {self.total} built" + (f": {running}" if running else "")

    def refresh(self, describe: Callable[[], str]) -> None:
        """Show new log lines; without a terminal, also print a line every LINE_INTERVAL seconds."""
        self.show_new_log_lines()
        if not is_interactive() and time.monotonic() - self._last_line_time >= LINE_INTERVAL:
            self._last_line_time = time.monotonic()
            say(describe())

    def show_new_log_lines(self) -> None:
        """Print the new complete lines of all running builds' logs, at the level VERBOSE."""
        if not is_verbose():
            return
        for name, (_, log) in self._running.items():
            try:
                with log.open("rb") as stream:
                    stream.seek(self._shown_bytes[log])
                    # An incomplete line is shown when its end has been written.
                    complete, newline, _ = stream.read().rpartition(b"\n")
            except OSError:
                continue
            self._shown_bytes[log] += len(complete) + len(newline)
            lines = complete.decode("utf-8", "replace").splitlines()
            if texts := [t for line in lines if (t := log_excerpt.strip_control_sequences(line))]:
                say("\n".join(f"{name} | {text}" for text in texts))
