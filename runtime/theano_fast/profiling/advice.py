"""What would make a program faster: what its profile tells, and remedies that were measured."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from theano_fast import profiles, report, stack, verify

# Of operations that ran in Python, what runs in C, by the name of their class.
TWINS = {
    "AdvancedIncSubtensor": "one vector of integers as the only index, and no mask, goes through C",
    "AdvancedSubtensor": "one vector of integers as the only index, and no mask, goes through C",
    "FromFunctionOp": "as_op is Python; an Op with a method c_code runs in C",
    "RandomFunction": "theano.sandbox.rng_mrg.MRG_RandomStreams draws in C",
    "Split": "it has C code in Theano 1.0",
    **dict.fromkeys(profiles.BLAS_OPS, "BLAS is not bound; theano-fast doctor tells why"),
}
# What is left out of both: Theano's clock around each node.
FLAGS = "profile=True,profiling.time_thunks=False"
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Remedy:
    """A change of how a program is run: name, the line that makes it, and where that line goes."""

    name: str
    where: str
    flags: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable


@dataclass(frozen=True)
class Tried:
    """A remedy, how many times as fast calls were with it, or why that is unknown."""

    name: str
    where: str
    factor: float | None
    told: str = ""

    def __str__(self) -> str:
        factor = f"{self.factor:6.2f} x" if self.factor is not None else "       -"
        return f"{factor}  {self.name:<28} {self.told or self.where}"


def of_profiles(read: Sequence[profiles.Profile]) -> Iterator[str]:
    """Yield what can be told unmeasured: nodes that ran in Python and need not, longest first."""
    found = []
    names = {name.casefold(): told for name, told in TWINS.items()}
    for each in read:
        if each.is_sum:
            continue
        applies = each.tables.get("Apply", profiles.Table()).rows
        for row in each.ops:
            # An op's text begins with its class's name, but Dot's, which is dot.
            kind = re.match(r"\w*", row.name)[0].casefold()  # type: ignore[index]
            if "Py" in row.kind and kind in names:
                nodes = [node for node in applies if node.name.startswith(f"{row.name}(")]
                places = "; ".join(
                    " ".join([str(node.nodes), *node.notes[-1:]]).strip() for node in nodes
                )
                found.append(
                    (
                        row.seconds,
                        f"{row.seconds:.3f} s, {row.percent:.0f}% of {each.name}: {row.name} ran in"
                        f" Python: {names[kind]} (node {places})",
                    )
                )
    for _, told in sorted(found, reverse=True):
        yield told


def remedies(cpus: int) -> Iterator[Remedy]:
    """Yield what is tried on so many processors: flags, counts of threads, the stacks beside."""
    for flag, value in (("floatX", "float32"), ("allow_gc", "False")):
        yield Remedy(f"{flag} = {value}", "in theanorc, under [global]", f"{flag}={value}")
    if cpus > 1:
        yield Remedy("openmp = True", "in theanorc, under [global]", "openmp=True")
    for count in sorted({1, cpus // 2} - {0, cpus}):
        threads = {f"{name}_NUM_THREADS": str(count) for name in ("OMP", "MKL", "OPENBLAS")}
        yield Remedy(f"OMP_NUM_THREADS={count}", "in the environment", environment=threads)
    for prefix in stack.beside():
        its = stack.load(prefix)
        if prefix != Path(sys.prefix).resolve() and its.axes["device"] == "cpu":
            python = str(prefix / "bin" / "python")
            yield Remedy(f"stack {its.name}", f"run it by {python}", python=python)


def measure(words: Sequence[str], tried: Sequence[Remedy]) -> tuple[Tried, ...]:
    """Run a program with each remedy, and without before and after; the best first.

    What fails has no factor, and says why. Nothing else is run once the program is interrupted, or
    where it fails without any remedy.
    """
    none = Remedy("as it is", "")
    runs, found = (none, *tried, none), list[tuple[float, str]]()
    limit, stopped, started = None, "", time.monotonic()
    for remedy in runs:
        if stopped:
            found.append((0.0, f"not tried: {stopped}"))
            continue
        seconds, told = attempt(words, remedy, limit)
        found.append((seconds, told))
        if told == INTERRUPTED:
            stopped = told
        elif limit is None:
            limit = 60 + 3 * (time.monotonic() - started)
            stopped = told and f"as it is, it {told}"
        report.progress(len(found), len(runs), started, remedy.name, told)
    # Either of both is what it takes; their distance is what other programs make of it.
    base = min((seconds for seconds, _ in (found[0], found[-1]) if seconds), default=0.0)
    names = (*tried, Remedy("as it is, once more", "what the machine's other programs do"))
    slower = max(found[0], found[-1]) if found[-1][0] else found[-1]
    tries = [
        Tried(each.name, each.where, base / seconds if seconds else None, told)
        for each, (seconds, told) in zip(names, (*found[1:-1], slower), strict=True)
    ]
    return tuple(sorted(tries, key=lambda each: each.factor or 0.0, reverse=True))


def attempt(words: Sequence[str], remedy: Remedy, limit: float | None) -> tuple[float, str]:
    """Return the seconds of a run, "" beside them; or none, and why."""
    try:
        return run(words, remedy, limit), ""
    except subprocess.TimeoutExpired:
        return 0.0, f"took more than {limit:.0f} s"
    except (profiles.ProfileError, OSError) as error:
        return 0.0, str(error)
    except KeyboardInterrupt:
        return 0.0, INTERRUPTED


def run(words: Sequence[str], remedy: Remedy, limit: float | None) -> float:
    """Return the seconds that a program's functions take in all calls.

    Raises:
        profiles.ProfileError: it fails, or calls none.
        subprocess.TimeoutExpired: it takes longer than the limit.
    """
    with tempfile.TemporaryDirectory(prefix="theano-fast-advice-") as folder:
        file = Path(folder, "profile.txt")
        flags = verify.theano_flags(FLAGS, f"profiling.destination={file}", remedy.flags)
        done = subprocess.run(
            [remedy.python, *words],
            env={**os.environ, **remedy.environment, "THEANO_FLAGS": flags.rstrip(",")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        if not file.exists() or (done.returncode != 0 and "Traceback" in done.stderr):
            last = " ".join(done.stderr.strip().splitlines()[-1:])
            raise profiles.ProfileError(f"{verify.ending(done.returncode)} {last}"[:100])
        read = profiles.parse(file.read_text(encoding="utf-8", errors="replace"))
    return sum(each.seconds for each in read if not each.is_scan and not each.is_sum)
