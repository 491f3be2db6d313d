"""Print the progress of a command: plain lines, and on a terminal also a live line."""

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

# The width of tables, in columns.
TABLE_WIDTH = 200
# Seconds between progress lines if the output is not a terminal.
LINE_INTERVAL = 60
# The name of a source file in a compiler's command line, without its directory.
SOURCE_FILE = re.compile(r"[\w+-]+\.(?:c|cc|cpp|cxx|C|f|f90|F|F90|for|S|s|pyx|py)(?!\w)")
console = Console(highlight=False, soft_wrap=True)


class Level(enum.Enum):
    """The verbosity of a command."""

    # Errors and the result.
    QUIET = 0
    # Also a line for each step.
    NORMAL = 1
    # Also the logs.
    VERBOSE = 2


_level = Level.NORMAL


def set_level(level: Level) -> None:
    """Set the verbosity of this process."""
    global _level  # noqa: PLW0603 (the level is for the whole process, like the console)
    _level = level


def is_verbose() -> bool:
    """Return whether the logs are printed."""
    return _level is Level.VERBOSE


def say(message: str) -> None:
    """Print a message, except at the level QUIET."""
    if _level is not Level.QUIET:
        console.print(message, markup=False)


def conclude(message: str) -> None:
    """Print the result of a command, at every level."""
    console.print(message, markup=False)


def is_interactive() -> bool:
    """Return whether the console is a terminal that can rewrite a line.

    rich's own attribute ``is_terminal`` is also true for a file if FORCE_COLOR is set.
    """
    return console.file.isatty() and not console.is_dumb_terminal


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without cutting any cell; the terminal wraps long lines."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    # Use a wider console. The argument ``width`` of print cannot exceed the console's width, which
    # is 80 columns without a terminal.
    Console(width=TABLE_WIDTH, highlight=False).print(table, crop=False)


def format_duration(seconds: float) -> str:
    """Format seconds as ``m:ss``."""
    minutes, remainder = divmod(int(seconds), 60)
    return f"{minutes}:{remainder:02}"


def format_estimate(seconds: float) -> str:
    """Format an estimated duration in whole seconds below 90 s, else in whole minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def format_time_left(done: int, total: int, started: float) -> str:
    """Format the estimated time left: ", about 3 min left".

    Return "" before the first part is done, and after the last part is done.

    Args:
        done: the number of finished parts of the work.
        total: the number of all parts.
        started: the value of time.monotonic() at the start of the work, in seconds.
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
    """Format a path for the user; make a path below the working directory relative."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def read_last_line(log: Path) -> str:
    """Read the last line of a log; return "" if the log is empty or cannot be read.

    Read only the last 2000 bytes, because logs are large and this function runs often.
    """
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 2000))
            lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return log_excerpt.strip_control_sequences(lines[-1]).strip() if lines else ""


def find_compiled_file(log: Path) -> str:
    """Find the last source file that the last line of a build's log names; "" if it names none."""
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
    """Show a live line on the terminal as a context; without a terminal, show nothing.

    Args:
        describe: a function that returns the text of the line. Another thread calls it at each
            refresh.
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
        # The start (time.monotonic()) and the log of each build in progress, by name of the recipe.
        self._running: dict[str, tuple[float, Path]] = {}
        # The number of printed bytes of each log.
        self._shown_bytes: dict[Path, int] = {}
        self._last_line_time = time.monotonic()

    def start(self, name: str, log: Path) -> None:
        """Record that the build of a recipe began, with its output in ``log``."""
        self._running = {**self._running, name: (time.monotonic(), log)}
        self._shown_bytes[log] = 0
        if not is_interactive():
            say(f"building {name}")

    def finish(self, name: str, cpu_seconds: float) -> None:
        """Record that the build of a recipe succeeded and used ``cpu_seconds``."""
        self.show_new_log_lines()
        began, _ = self._running[name]
        # Replace the dictionary instead of changing it, because another thread iterates over it.
        self._running = {other: row for other, row in self._running.items() if other != name}
        self.done += 1
        if not is_interactive() or is_verbose():
            elapsed = format_duration(time.monotonic() - began)
            say(f"built    {name} ({self.done}/{self.total}, {elapsed}, {cpu_seconds:.0f} CPU s)")

    def describe(self) -> str:
        """Format the progress: "3 of 12 built: gcc (tree.c), zlib"."""
        running = ", ".join(
            f"{name} ({file})" if (file := find_compiled_file(log)) else name
            for name, (_, log) in self._running.items()
        )
        return f"{self.done} of {self.total} built" + (f": {running}" if running else "")

    def refresh(self, describe: Callable[[], str]) -> None:
        """Print new log lines; without a terminal, also print the progress at intervals.

        Args:
            describe: a function that returns the line of progress. The line is printed every
                LINE_INTERVAL seconds.
        """
        self.show_new_log_lines()
        if not is_interactive() and time.monotonic() - self._last_line_time >= LINE_INTERVAL:
            self._last_line_time = time.monotonic()
            say(describe())

    def show_new_log_lines(self) -> None:
        """At the level VERBOSE, print the new complete lines of the logs of all running builds."""
        if not is_verbose():
            return
        for name, (_, log) in self._running.items():
            try:
                with log.open("rb") as stream:
                    stream.seek(self._shown_bytes[log])
                    # Print an incomplete line later, when the log contains its end.
                    complete, newline, _ = stream.read().rpartition(b"\n")
            except OSError:
                continue
            self._shown_bytes[log] += len(complete) + len(newline)
            lines = complete.decode("utf-8", "replace").splitlines()
            if texts := [t for line in lines if (t := log_excerpt.strip_control_sequences(line))]:
                say("\n".join(f"{name} | {text}" for text in texts))
