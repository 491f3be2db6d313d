"""Measure calls of Theano's functions in several environments; print speed-ups over stock Theano.

The runs of the environments alternate.
"""

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
from builder.measure import bench, provenance
from builder.measure.references import STOCK

# The number of rounds. The report has the shortest time of each call, because other programs on the
# machine can only slow calls down.
ROUNDS = 3

# Wall seconds of one call, by environment and name of the call.
Seconds = Mapping[str, Mapping[str, float]]


def measure(environments: Sequence[str], quick: bool) -> Path:
    """Measure environments; write the report, and print the speed-ups over stock Theano.

    Args:
        environments: stock Theano and built stacks.
        quick: omit the full-size training step, which stock Theano compiles in 20 minutes.

    Returns:
        The report's file.

    Raises:
        CommandFailed: a function does not compile or run.
    """
    sizes = ["ntm-small"] if quick else ["ntm-small", "ntm"]
    best: dict[str, dict[str, float]] = {name: {} for name in environments}
    with contextlib.ExitStack() as stack:
        processes = {name: stack.enter_context(start_process(name, sizes)) for name in environments}
        started = time.monotonic()
        for turn in range(ROUNDS):
            time_left = progress.format_time_left(turn, ROUNDS, started)
            for name, process in processes.items():
                # In the first round, each process compiles its functions.
                progress.say(f"round {turn + 1} of {ROUNDS}: {name}{time_left}")
                for call, seconds in json.loads(process.ask("round")).items():
                    best[name][call] = min(best[name].get(call, seconds), seconds)
    file = paths.REPORTS / "bench-run.json"
    software = {name: provenance.describe(name, ROUNDS) for name in environments}
    document = {**bench.start_document(), "seconds": best, "provenance": software}
    report.write(document | bench.describe_circumstances(), file)
    progress.print_table(*make_table(best))
    progress.say(str(file))
    return file


def start_process(environment: str, sizes: Sequence[str]) -> Conversation:
    """Start ``bench/speed.py`` in an environment.

    The process measures one round for each line that it receives. Its answer is a line of JSON: the
    seconds of one call, by the name of the call.

    Args:
        environment: a stack or a reference.
        sizes: the training steps to measure: ``ntm-small``, ``ntm``.
    """
    home = bench.make_home(environment, "run")
    return Conversation(
        [envs.get_python_path(environment), paths.BENCH / "speed.py", *sizes],
        env=bench.make_environ(environment, home),
        cwd=home,
    )


def make_table(best: Seconds) -> tuple[list[str], list[list[str]]]:
    """Format the report as a table: the time of each call, and its speed-up over stock Theano.

    The last lines have the geometric means of the groups of :func:`group_calls`.

    Returns:
        The header and the lines.
    """
    calls = list(best[STOCK])
    lines = []
    for call in calls:
        cells = [
            f"{format_time(call, best[n][call])} {compute_speed_up(best, n, call):5.2f}x"
            for n in best
        ]
        lines.append([call, *cells])
    for title, members in group_calls(calls).items():
        means = (geometric_mean(compute_speed_up(best, n, call) for call in members) for n in best)
        lines.append([f"{title}, geometric mean", *(f"{mean:.2f}x" for mean in means)])
    return ["call", *best], lines


def group_calls(calls: Sequence[str]) -> dict[str, list[str]]:
    """Group the names of elementwise calls, such as ``exp float32 1e+05``, by dtype and length.

    Products and training steps are in no group.
    """
    groups: dict[str, list[str]] = {}
    for call in calls:
        if not call.startswith(("check_blas", "ntm")):
            _, dtype, length = call.rsplit(" ", 2)
            groups.setdefault(f"{dtype} {length}", []).append(call)
    return groups


def compute_speed_up(best: Seconds, name: str, call: str) -> float:
    """Compute the speed-up of a call in the environment ``name`` over stock Theano."""
    return best[STOCK][call] / best[name][call]


def format_time(call: str, seconds: float) -> str:
    """Format the time of a call, or the rate of a matrix product in GFLOP/s.

    The name of a product, such as ``check_blas float32 2000``, ends with the order of its matrices.
    """
    if call.startswith("check_blas"):
        order = int(call.rsplit(" ", 1)[1])
        return f"{2 * order**3 / seconds / 1e9:.1f} GFLOP/s"
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
