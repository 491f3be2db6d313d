"""Shows which recipes are being built: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table

WIDEST_TABLE = 200
console = Console(highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Print one line."""
    console.print(message, markup=False)


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


def last_line(log: Path) -> str:
    """The last line a build has written to its log, without reading the whole of it."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 2000))
            lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


class Progress:
    """The recipes under way, of ``total``."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._running: dict[str, tuple[float, Path]] = {}

    def started(self, name: str, log: Path) -> None:
        """A recipe's build began; its output goes to ``log``."""
        self._running[name] = (time.monotonic(), log)
        if not console.is_terminal:
            say(f"building {name}")

    def finished(self, name: str, cpu_seconds: float) -> None:
        """A recipe's build ended well."""
        began, _ = self._running.pop(name)
        self.done += 1
        elapsed = seconds(time.monotonic() - began)
        say(f"built    {name} ({self.done}/{self.total}, {elapsed}, {cpu_seconds:.0f} CPU s)")

    def __rich__(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for name, (began, log) in self._running.items():
            line = last_line(log)[: max(20, console.width - 40)]
            table.add_row(name, seconds(time.monotonic() - began), line)
        table.add_row(f"{self.done}/{self.total} built", "", "")
        return table


@contextmanager
def shown(progress: Progress) -> Iterator[None]:
    """Draw the table while the block runs, where there is a terminal to draw on."""
    if not console.is_terminal:
        yield
        return
    with Live(progress, console=console, refresh_per_second=2, transient=True):
        yield
