"""What holds in an environment, and why: which of the user's settings undo its stack, at what cost.

Theano runs in other processes, under the user's settings, the stack's alone, or the stack's and one
of the user's: a flag that breaks Theano must not end the report.
"""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from theano_fast import facts, rc, report, settings, verify

# Seconds for the small training step of costs.py: DebugMode takes 20.
LIMIT = 60
# A step that takes less than this many times the stack's may do so by chance.
NOTABLE = 1.15
# These say where files are: a step costs the same.
NOT_MEASURED = ("base_compiledir", "compiledir", "compiledir_format")
# Bytes: the modules of one large program.
ROOM = 2**28


@dataclass(frozen=True)
class Verdict:
    """What a setting does: whether it undoes the stack, in words, and the mend."""

    undoes: bool
    effect: str
    mend: str


@dataclass(frozen=True)
class Finding:
    """A flag that is not the stack's.

    costs has what the step of costs.py takes with it alone, ``first`` and ``call`` in seconds, or
    an ``error``; it is empty where that was not measured.
    """

    setting: settings.Setting
    stacks: str
    verdict: Verdict
    costs: Mapping[str, Any]


def examine(program: Path | None, measured: bool) -> dict[str, Any]:
    """Return all that the report says; raises rc.RcError for files that cannot be read."""
    users, started = settings.users(program), time.monotonic()
    as_it_is = None if program is None else {each.flag: each.value for each in users}
    with tempfile.TemporaryDirectory(prefix="theano-fast-doctor-") as folder:
        bench = Bench(Path(folder))
        stacks, known = bench.probe({}), bench.probe(as_it_is)
        errors = {}
        if "error" in known:
            alone = {each.flag: bench.probe({each.flag: each.value}) for each in users}
            errors = {flag: told["error"] for flag, told in alone.items() if "error" in told}
            # What one flag breaks, the others are still to be seen in.
            rest = {each.flag: each.value for each in users if each.flag not in errors}
            known = bench.probe(rest)
        if "error" in stacks or "error" in known:
            return {"error": stacks.get("error") or known["error"]}
        values, findings = stacks["flags"], []
        base = bench.cost({}) if measured else {}
        for number, each in enumerate(users, 1):
            error, stacks_value = errors.get(each.flag, ""), values.get(each.flag)
            if not error and stacks_value == known["flags"].get(each.flag, each.value):
                continue
            worth = stacks_value is not None and not error and each.flag not in NOT_MEASURED
            costs = bench.cost({each.flag: each.value}) if measured and worth else {}
            findings.append(Finding(each, stacks_value or "", judge(each, values, error), costs))
            if costs:
                report.progress(number, len(users), started, each.flag)
        if any(each.costs for each in findings):
            again = bench.cost({})
            base = {key: min(base[key], again[key]) for key in base}
    host = facts.host()
    return {
        "base": base,
        "error": "",
        "findings": [asdict(each) for each in findings],
        "host": host,
        "problems": problems(known, host["cpus_usable"]),
        **{key: known[key] for key in ("blas", "cache", "compiler", "device", "openmp", "says")},
    }


@dataclass(frozen=True)
class Bench:
    """Processes with other settings than the user's, which compile into a folder of their own."""

    folder: Path

    def probe(self, flags: Mapping[str, str] | None) -> dict[str, Any]:
        """Return what probe.py tells under the stack's settings and these, or the user's for None.

        Where Theano fails, ``error`` has its last line; ``says`` has what it wrote.
        """
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        try:
            done = self._run(["theano_fast.probe", str(answer)], flags)
        except subprocess.TimeoutExpired:
            return {"error": f"import theano did not end within {LIMIT} s"}
        lines = done.stderr.strip().splitlines()
        if done.returncode:
            return {"error": lines[-1] if lines else verify.ending(done.returncode)}
        return {**json.loads(answer.read_text()), "says": lines}

    def cost(self, flags: Mapping[str, str]) -> dict[str, Any]:
        """Return what costs.py measures under the stack's settings and these."""
        with tempfile.TemporaryDirectory(dir=self.folder) as compiledir:
            its_own = {"base_compiledir": compiledir, "profile": "False"}
            try:
                done = self._run(["theano_fast.costs"], {**flags, **its_own})
            except subprocess.TimeoutExpired:
                return {"error": f"did not end within {LIMIT} s"}
        if done.returncode:
            lines = done.stderr.strip().splitlines()[-1:]
            return {"error": _essence(" ".join([verify.ending(done.returncode), *lines]))}
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def _run(
        self, command: Sequence[str], flags: Mapping[str, str] | None
    ) -> subprocess.CompletedProcess[str]:
        environ = dict(os.environ)
        if flags is not None:
            file = self.folder / "theanorc"
            file.write_text(rc.render(flags))
            environ |= {"THEANORC": str(file), settings.FLAGS: ""}
        return subprocess.run(
            [sys.executable, "-P", "-m", *command],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )


def _essence(error: str) -> str:
    """Return what the linker or compiler said, of an exception that has the whole graph."""
    _, found, said = error.partition("Compilation failed")
    return (found + said.partition("', '")[0]).strip() if found else error


def judge(setting: settings.Setting, stacks: Mapping[str, str], error: str) -> Verdict:
    """Say what a setting does.

    Args:
        stacks: all flags that Theano has, with the stack's values.
        error: how Theano ends with this flag alone, "" if it does not.
    """
    out = f"take it out of {setting.place}"
    _, messages = rc.translate({setting.flag: setting.value})
    if messages:
        on_cpu = stacks["device"] == "cpu" and setting.flag in OF_DEVICES
        mend = f"{out}: this stack computes on the CPU" if on_cpu else messages[0]
        return Verdict(True, "of before Theano 1.0" + (f": {error}" if error else ""), mend)
    if error:
        return Verdict(True, f"Theano does not start: {error}", out)
    if setting.flag not in stacks:
        return Verdict(True, "Theano has no such flag, and passes over it", out)
    effect = EFFECTS[setting.flag](setting.value) if setting.flag in EFFECTS else ""
    return Verdict(bool(effect) and setting.value != rc.FAST_CXXFLAGS, effect, out)


def _ldflags(value: str) -> str:
    if not value:
        return "no BLAS is linked: products go through NumPy"
    if "mkl_rt" in value:
        return "MKL with threads of its own choice: beside GNU OpenMP, products have been wrong"
    return "another BLAS than the stack's"


OF_DEVICES = ("contexts", "device", "init_gpu_device", "lib.cnmem")
NOT_SHIPPED = "no module fits that comes compiled with the environment: g++ makes them all"
# By flag, what a value that is not the stack's takes from it. Others are choices.
EFFECTS: Mapping[str, Callable[[str], str]] = {
    "blas.ldflags": _ldflags,
    "cache_optimizations": lambda _: "graphs are optimized anew in each process",
    "cmodule.shipped": lambda _: NOT_SHIPPED,
    "cxx": lambda value: "another compiler" if value else "everything runs in Python",
    "gcc.cxxflags": lambda _: NOT_SHIPPED,
    "linker": lambda value: "everything runs in Python" if value == "py" else "",
    "openmp": lambda _: NOT_SHIPPED,
}


def problems(known: Mapping[str, Any], usable: int) -> list[str]:
    """Return what is wrong of what probe.py tells, but for flags; usable is a number of CPUs."""
    found = []
    compiler, cache, device = known["compiler"], known["cache"], known["device"]
    if "version" not in compiler:
        found.append(f"no compiler: cxx={compiler['cxx']} cannot be run; install g++, or set cxx")
    elif compiler["error"]:
        found.append(f"the compiler {compiler['cxx']} fails: {compiler['error']}")
    if not cache["writable"]:
        found.append(f"the cache {cache['path']} is read-only: what is compiled is not kept")
    if cache["free"] < ROOM:
        found.append(f"the cache has {cache['free'] / 2**20:.0f} MB left: set base_compiledir")
    for what, each in (("BLAS", known["blas"]), ("OpenMP", known["openmp"])):
        if len(each) > 1:
            names = ", ".join(library["library"] for library in each)
            found.append(f"more than one {what} is loaded, which may give wrong results: {names}")
    asked = known["flags"]["device"]
    if asked != "cpu" and not device["active"]:
        found.append(f"device={asked} is not in use, the CPU is: see docs/gpu.md, or set cpu")
    for each in known["blas"]:
        if each.get("threads", 0) > usable:
            found.append(f"BLAS has {each['threads']} threads on {usable} CPUs: *_NUM_THREADS")
    return found


def healthy(known: Mapping[str, Any]) -> bool:
    """Tell whether nothing undoes the stack."""
    return not (known["error"] or known["problems"] or _undone(known))


def _undone(known: Mapping[str, Any]) -> int:
    return sum(each["verdict"]["undoes"] for each in known["findings"])


def render(known: Mapping[str, Any]) -> str:
    """Return the report: each flag with what it costs and the mend, the machine, a verdict."""
    if known["error"]:
        return f"Theano does not start: {known['error']}"
    lines = [line for each in known["findings"] for line in _flag(each, known["base"])]
    lines += _machine(known)
    lines += [f"! {each}" for each in known["problems"]]
    count = _undone(known) + len(known["problems"])
    lines.append(f"{count} to mend" if count else "nothing undoes the stack")
    home = str(Path.home())
    return "\n".join(
        textwrap.fill(
            line.replace(home + "/", "~/"),
            report.WIDTH,
            subsequent_indent=" " * 6,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )


def _flag(finding: Mapping[str, Any], base: Mapping[str, Any]) -> Iterator[str]:
    setting, verdict = finding["setting"], finding["verdict"]
    stacks = f", the stack's is {finding['stacks']}" if finding["stacks"] else ""
    mark = "!" if verdict["undoes"] else "-"
    yield f"{mark} {setting['flag']}={setting['value']} in {setting['place']}{stacks}"
    if verdict["effect"]:
        yield f"    {verdict['effect']}"
    if finding["costs"]:
        yield f"    a small training step: {_cost(finding['costs'], base)}"
    if verdict["undoes"]:
        yield f"    mend: {verdict['mend']}"


def _cost(costs: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    if "error" in costs or "error" in base:
        return str(costs.get("error") or base["error"])
    told = []
    for key, what in (("first", "until its first result"), ("call", "a call")):
        ratio = costs[key] / base[key]
        if not 1 / NOTABLE < ratio < NOTABLE:
            times = f"{ratio:.0f}" if ratio > 10 else f"{ratio:.2g}"
            told.append(f"{what} {costs[key]:.3g} s, not {base[key]:.3g}: {times} times")
    return "; ".join(told) or "takes as long as without it"


def _machine(known: Mapping[str, Any]) -> Iterator[str]:
    compiler, cache, host = known["compiler"], known["cache"], known["host"]
    if "version" in compiler:
        yield f"compiler  {compiler['version']}, {compiler['seconds']:.2f} s for an empty function"
    lock = f"locked by {cache['locked_by']}" if cache["locked_by"] else "not locked"
    yield (
        f"cache     {cache['files']} files of {cache['bytes'] / 2**20:.1f} MB on"
        f" {cache['file_system']}, {cache['free'] / 2**30:.0f} GB free, {lock}:"
    )
    yield f"      {cache['path']}"
    variables = ", ".join(f"{name}={value}" for name, value in host["thread_variables"].items())
    yield f"threads   {host['cpus_usable']} of {host['cpus']} CPUs usable; {variables}"
    for each in known["blas"]:
        told = each.get("version", each.get("error"))
        yield f"BLAS      {told}, {each.get('threads', '?')} threads"
    contexts = known["device"]["contexts"].items()
    yield f"device    {', '.join(f'{name}: {what}' for name, what in contexts) or 'CPU'}"
    yield from (f"import theano says: {line}" for line in known["says"])
