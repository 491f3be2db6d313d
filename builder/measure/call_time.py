"""Run time: what stock Theano and the stacks take for the same calls, measured in turns."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean

from builder import report
from builder.common import paths, progress
from builder.common.processes import Conversation
from builder.environment import envs
from builder.measure import bench
from builder.measure.references import STOCK

# Other programs only ever make a round slower: the best of a few is what the machine can do.
ROUNDS = 3

# By environment, wall seconds of one call by what is called.
Seconds = Mapping[str, Mapping[str, float]]


def measure(environments: Sequence[str], quick: bool) -> Path:
    """Measure environments; write the report, and print it against stock Theano.

    Args:
        quick: only the small training step: stock Theano compiles the full one for 20 minutes.

    Raises:
        CommandFailed: a function does not compile or run.
    """
    sizes = ["ntm-small"] if quick else ["ntm-small", "ntm"]
    best: dict[str, dict[str, float]] = {name: {} for name in environments}
    with contextlib.ExitStack() as stack:
        talks = {name: stack.enter_context(start(name, sizes)) for name in environments}
        started = time.monotonic()
        for turn in range(ROUNDS):
            left = progress.left(turn, ROUNDS, started)
            for name, talk in talks.items():
                # In the first each compiles what it calls.
                progress.say(f"round {turn + 1} of {ROUNDS}: {name}{left}")
                for call, seconds in json.loads(talk.ask("round")).items():
                    best[name][call] = min(best[name].get(call, seconds), seconds)
    file = paths.REPORTS / "bench-run.json"
    found = {**bench.document(), "seconds": best}
    report.write(found | bench.circumstances(), file)
    progress.table(*table(best))
    progress.say(str(file))
    return file


def start(environment: str, sizes: Sequence[str]) -> Conversation:
    """Start ``bench/speed.py`` in an environment: it answers a line with a round's times."""
    home = bench.home(environment, "run")
    return Conversation(
        [envs.python(environment), paths.BENCH / "speed.py", *sizes],
        env=bench.variables(home),
        cwd=home,
    )


def table(best: Seconds) -> tuple[list[str], list[list[str]]]:
    """The report as a table: per call its time, and how many times as fast as stock it is."""
    calls = list(best[STOCK])
    lines = []
    for call in calls:
        cells = [f"{shown(call, best[n][call])} {speed_up(best, n, call):5.2f}x" for n in best]
        lines.append([call, *cells])
    for title, members in groups(calls).items():
        means = (geometric_mean(speed_up(best, n, call) for call in members) for n in best)
        lines.append([f"{title}, geometric mean", *(f"{mean:.2f}x" for mean in means)])
    return ["call", *best], lines


def groups(calls: Sequence[str]) -> dict[str, list[str]]:
    """The elementwise calls by type and length: all but those of products and training steps."""
    found: dict[str, list[str]] = {}
    for call in calls:
        if not call.startswith(("check_blas", "ntm")):
            _, dtype, length = call.rsplit(" ", 2)
            found.setdefault(f"{dtype} {length}", []).append(call)
    return found


def speed_up(best: Seconds, name: str, call: str) -> float:
    """How many times as fast as on stock Theano a call is."""
    return best[STOCK][call] / best[name][call]


def shown(call: str, seconds: float) -> str:
    """The time of a call; the rate of a product, the order of whose matrices ends its name."""
    if call.startswith("check_blas"):
        order = int(call.rsplit(" ", 1)[1])
        return f"{2 * order**3 / seconds / 1e9:.1f} GFLOP/s"
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
