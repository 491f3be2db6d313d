"""Suggest changes that make a program faster: read its profile, and measure remedies."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theano_fast import profiles, report, stack, verify

# Maps the class of an op that ran in Python to advice for running the operation in C.
ALTERNATIVES = {
    "AdvancedIncSubtensor": "a single vector of integers as index, without a mask, runs in C",
    "AdvancedSubtensor": "a single vector of integers as index, without a mask, runs in C",
    "FromFunctionOp": "as_op is Python; an Op with a method c_code runs in C",
    "RandomFunction": "theano.sandbox.rng_mrg.MRG_RandomStreams draws in C",
    "Split": "it has C code in Theano 1.0",
    **dict.fromkeys(profiles.BLAS_OPS, "no BLAS is linked; theano-fast doctor shows the reason"),
}
# Do not time each node, because reading the clock slows calls down.
FLAGS = "profile=True,profiling.time_thunks=False"
INTERRUPTED = "interrupted"
UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Remedy:
    """A change to the run of a program.

    ``name`` is the change, such as "floatX = float32". ``where`` is its location, such as
    "in theanorc, under [global]". The other fields are the THEANO_FLAGS, environment variables and
    interpreter that make the change for one run.
    """

    name: str
    where: str
    flags: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable


@dataclass(frozen=True)
class Trial:
    """A remedy and its speed-up of calls, or the reason why the speed-up is unknown."""

    name: str
    where: str
    factor: float | None
    reason: str = ""

    def __str__(self) -> str:
        factor = f"{self.factor:6.2f} x" if self.factor is not None else "       -"
        return f"{factor}  {self.name:<28} {self.reason or self.where}"

    def to_json(self) -> dict[str, Any]:
        """Return the trial as a JSON object."""
        return {
            "name": self.name,
            "where": self.where,
            "factor": self.factor,
            "reason": self.reason,
        }


def find_python_ops(parsed: Sequence[profiles.Profile]) -> Iterator[str]:
    """Yield a suggestion for each op that ran in Python but has an alternative, slowest first."""
    suggestions = []
    alternatives = {name.casefold(): text for name, text in ALTERNATIVES.items()}
    for profile in parsed:
        if profile.is_sum:
            continue
        applies = profile.tables.get("Apply", profiles.Table()).rows
        for row in profile.ops:
            # An op's text begins with the name of its class. Ignore case, because Dot's text begins
            # with "dot".
            kind = re.match(r"\w*", row.name)[0].casefold()  # type: ignore[index]
            if "Py" in row.kind and kind in alternatives:
                nodes = [node for node in applies if node.name.startswith(f"{row.name}(")]
                lines = "; ".join(
                    " ".join([str(node.nodes), *node.notes[-1:]]).strip() for node in nodes
                )
                text = (
                    f"{row.seconds:.3f} s, {row.percent:.0f}% of {profile.name}: {row.name} ran in"
                    f" Python: {alternatives[kind]} (node {lines})"
                )
                suggestions.append((row.seconds, text))
    for _, text in sorted(suggestions, reverse=True):
        yield text


def list_remedies(cpus: int) -> Iterator[Remedy]:
    """Yield the remedies: flags, thread counts, other stacks in this environment's folder.

    Args:
        cpus: the number of CPUs that the program may use.
    """
    for flag, value in (("floatX", "float32"), ("allow_gc", "False")):
        yield Remedy(f"{flag} = {value}", "in theanorc, under [global]", f"{flag}={value}")
    if cpus > 1:
        yield Remedy("openmp = True", "in theanorc, under [global]", "openmp=True")
    for count in sorted({1, cpus // 2} - {0, cpus}):
        threads = {f"{name}_NUM_THREADS": str(count) for name in ("OMP", "MKL", "OPENBLAS")}
        yield Remedy(f"OMP_NUM_THREADS={count}", "as an environment variable", environment=threads)
    for prefix in stack.find_siblings():
        sibling = stack.load(prefix)
        if prefix != Path(sys.base_prefix).resolve() and sibling.axes["device"] == "cpu":
            python = str(prefix / "bin" / "python")
            yield Remedy(f"stack {sibling.name}", f"run it with {python}", python=python)


def measure_remedies(words: Sequence[str], remedies: Sequence[Remedy]) -> tuple[Trial, ...]:
    """Run a program unchanged, then with each remedy, then unchanged again; return the trials.

    Sort the trials by speed-up, largest first. The trial of a failed run has a reason instead
    of a speed-up. After an interruption, or if the first unchanged run fails, no more runs start.

    Args:
        words: the program's file, then its arguments.
        remedies: the remedies to measure.
    """
    unchanged = Remedy(UNCHANGED, "")
    runs, results = (unchanged, *remedies, unchanged), list[tuple[float, str]]()
    limit, stopped, started = None, "", time.monotonic()
    for remedy in runs:
        if stopped:
            results.append((0.0, f"not tried: {stopped}"))
            continue
        seconds, reason = try_remedy(words, remedy, limit)
        results.append((seconds, reason))
        if reason == INTERRUPTED:
            stopped = reason
        elif limit is None:
            # The timeout of all later runs, in seconds.
            limit = 60 + 3 * (time.monotonic() - started)
            stopped = reason and f"unchanged, the program {reason}"
        report.print_progress(len(results), len(runs), started, remedy.name, reason)
    # The faster unchanged run is the baseline. Its ratio to the slower unchanged run shows the
    # noise.
    base = min((seconds for seconds, _ in (results[0], results[-1]) if seconds), default=0.0)
    again = Remedy(f"{UNCHANGED}, again", "noise: the difference between two unchanged runs")
    slower = max(results[0], results[-1]) if results[-1][0] else results[-1]
    trials = [
        Trial(remedy.name, remedy.where, base / seconds if seconds else None, reason)
        for remedy, (seconds, reason) in zip(
            (*remedies, again), (*results[1:-1], slower), strict=True
        )
    ]
    return tuple(sorted(trials, key=lambda trial: trial.factor or 0.0, reverse=True))


def try_remedy(words: Sequence[str], remedy: Remedy, limit: float | None) -> tuple[float, str]:
    """Run a program with a remedy; return (seconds, ""), or (0, the reason of the failure)."""
    try:
        return time_calls(words, remedy, limit), ""
    except subprocess.TimeoutExpired:
        return 0.0, f"took more than {limit:.0f} s"
    except (profiles.ProfileError, OSError) as error:
        return 0.0, str(error)
    except KeyboardInterrupt:
        return 0.0, INTERRUPTED


def time_calls(words: Sequence[str], remedy: Remedy, limit: float | None) -> float:
    """Run a program, and return the seconds of all calls of its Theano functions.

    Args:
        words: the program's file, then its arguments.
        remedy: the change to the run.
        limit: the timeout in seconds; None waits until the program ends.

    Raises:
        profiles.ProfileError: the program fails, or calls no function.
        subprocess.TimeoutExpired: the program takes longer than ``limit``.
    """
    with tempfile.TemporaryDirectory(prefix="theano-fast-advice-") as folder:
        file = Path(folder, "profile.txt")
        flags = verify.append_flags(FLAGS, f"profiling.destination={file}", remedy.flags)
        done = subprocess.run(
            [remedy.python, *words],
            env={**os.environ, **remedy.environment, "THEANO_FLAGS": flags},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        if not file.exists() or (done.returncode != 0 and "Traceback" in done.stderr):
            last = " ".join(done.stderr.strip().splitlines()[-1:])
            raise profiles.ProfileError(f"{verify.describe_exit(done.returncode)} {last}"[:100])
        parsed = profiles.parse(file.read_text(encoding="utf-8", errors="replace"))
    return sum(profile.seconds for profile in parsed if not profile.is_scan and not profile.is_sum)
