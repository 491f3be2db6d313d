"""Diagnose an environment: find settings that disable parts of the stack, and measure their cost.

Theano runs in other processes, so that a flag that breaks Theano does not end the diagnosis. Each
process has the user's settings, the stack's settings, or the stack's settings and one of the user's
flags.
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
from theano_fast.porting import imports

# The timeout of a process in seconds. step_timing.py takes the longest, 20 s in DebugMode.
LIMIT = 60
# Report a time only if it differs from the stack's time by this factor. A smaller difference may
# be noise.
NOTABLE = 1.15
# Flags that only name directories. They do not change the speed of the training step.
NOT_MEASURED = ("base_compiledir", "compiledir", "compiledir_format")
# The variable that selects OpenBLAS's kernels. Without it, OpenBLAS selects them for the processor.
CORE_VARIABLE = "OPENBLAS_CORETYPE"
# Report a problem if the cache's file system has fewer free bytes. The modules of one large program
# have this size.
LEAST_FREE = 2**28


@dataclass(frozen=True)
class Verdict:
    """The judgement of a setting.

    ``disables_part``: the setting disables a part of the stack. ``effect`` is the setting's
    effect, or "". ``fix`` is the fix.
    """

    disables_part: bool
    effect: str
    fix: str


@dataclass(frozen=True)
class Finding:
    """A flag whose value differs from the stack's value.

    ``stacks`` is the stack's value, "" if Theano has no such flag. ``costs`` has the times of
    step_timing.py with this flag alone: ``first`` and ``call`` in seconds, or an ``error``. It is
    empty if nothing was measured.
    """

    setting: settings.Setting
    stacks: str
    verdict: Verdict
    costs: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {**asdict(self), "setting": self.setting.to_json()}


def examine(program: Path | None, measure: bool) -> dict[str, Any]:
    """Return the diagnosis as a JSON object.

    Args:
        program: a program whose imports and flags to examine too, or None.
        measure: whether to time a small training step with each flag.

    Raises:
        rc.RcError, sources.SourceError: a file cannot be read.
    """
    missing = imports.examine(program) if program else ()
    user_settings, started = settings.read_users(program), time.monotonic()
    # Without a program, Theano itself reads the user's settings.
    flags = None if program is None else {setting.flag: setting.value for setting in user_settings}
    with tempfile.TemporaryDirectory(prefix="theano-fast-doctor-") as folder:
        bench = Bench(Path(folder))
        stack_probe, user_probe = bench.probe({}), bench.probe(flags)
        errors = {}
        if "error" in user_probe:
            probes = {
                setting.flag: bench.probe({setting.flag: setting.value})
                for setting in user_settings
            }
            errors = {flag: answer["error"] for flag, answer in probes.items() if "error" in answer}
            # Examine the other flags without the flags that break Theano.
            working = {
                setting.flag: setting.value
                for setting in user_settings
                if setting.flag not in errors
            }
            user_probe = bench.probe(working)
        if "error" in stack_probe or "error" in user_probe:
            error = stack_probe.get("error") or user_probe["error"]
            return {"error": error, "missing": [name.to_json() for name in missing]}
        stack_values, findings = stack_probe["flags"], []
        if CORE_VARIABLE in os.environ:
            problems = find_other_kernels(stack_probe, bench.probe({}, without=CORE_VARIABLE))
        else:
            problems = []
        base = bench.measure({}) if measure else {}
        for number, setting in enumerate(user_settings, 1):
            flag, error = setting.flag, errors.get(setting.flag, "")
            stack_value = stack_values.get(flag)
            if not error and stack_value == user_probe["flags"].get(flag, setting.value):
                continue
            measurable = stack_value is not None and not error and flag not in NOT_MEASURED
            costs = bench.measure({flag: setting.value}) if measure and measurable else {}
            findings.append(
                Finding(
                    setting, stack_value or "", judge_setting(setting, stack_values, error), costs
                )
            )
            if costs:
                report.print_progress(number, len(user_settings), started, flag)
        if any(finding.costs for finding in findings):
            # Measure the stack's settings again, and keep the least times, because other programs
            # can only slow a run down.
            second_base = bench.measure({})
            if "error" in base:
                base = second_base
            elif "error" not in second_base:
                base = {key: min(base[key], second_base[key]) for key in base}
    host = facts.describe_host()
    return {
        "base": base,
        "error": "",
        "findings": [finding.to_json() for finding in findings],
        "missing": [name.to_json() for name in missing],
        "host": host,
        "problems": [
            *problems,
            *find_other_venv(os.environ),
            *find_problems(user_probe, host["cpus_usable"]),
        ],
        **{
            key: user_probe[key]
            for key in ("blas", "cache", "compiler", "device", "openmp", "says")
        },
    }


@dataclass(frozen=True)
class Bench:
    """Runner of Theano with other settings in new processes; ``folder`` has temporary files."""

    folder: Path

    def probe(self, flags: Mapping[str, str] | None, without: str = "") -> dict[str, Any]:
        """Return the output of probe.py.

        ``says`` has the lines of stderr. If Theano fails, the only key is ``error``, the last line
        of stderr.

        Args:
            flags: the flags to add to the stack's settings; None keeps the user's settings.
            without: an environment variable to remove.
        """
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        try:
            done = self._run(["theano_fast.probe", str(answer)], flags, without)
        except subprocess.TimeoutExpired:
            return {"error": f"import theano did not end within {LIMIT} s"}
        lines = done.stderr.strip().splitlines()
        if done.returncode:
            return {"error": lines[-1] if lines else verify.describe_exit(done.returncode)}
        return {**json.loads(answer.read_text()), "says": lines}

    def measure(self, flags: Mapping[str, str]) -> dict[str, Any]:
        """Return the output of step_timing.py, or an ``error``.

        Args:
            flags: the flags to add to the stack's settings.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as compiledir:
            fixed = {"base_compiledir": compiledir, "profile": "False"}
            try:
                done = self._run(["theano_fast.step_timing"], {**flags, **fixed})
            except subprocess.TimeoutExpired:
                return {"error": f"did not end within {LIMIT} s"}
        if done.returncode:
            lines = done.stderr.strip().splitlines()[-1:]
            error = " ".join([verify.describe_exit(done.returncode), *lines])
            return {"error": _shorten_error(error)}
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def _run(
        self, command: Sequence[str], flags: Mapping[str, str] | None, without: str = ""
    ) -> subprocess.CompletedProcess[str]:
        environ = {key: value for key, value in os.environ.items() if key != without}
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


def _shorten_error(error: str) -> str:
    """Return the message of g++ or ld in an exception's text; if it has none, return the text.

    After the message, Theano's exception prints the whole graph.
    """
    _, start, message = error.partition("Compilation failed")
    return (start + message.partition("', '")[0]).strip() if start else error


def judge_setting(setting: settings.Setting, stacks: Mapping[str, str], error: str) -> Verdict:
    """Judge a setting.

    Args:
        setting: the user's setting.
        stacks: the stack's value of each flag of Theano.
        error: Theano's error with this flag alone; "" if Theano starts.
    """
    remove = f"remove it from {setting.origin}"
    _, messages = rc.translate({setting.flag: setting.value})
    if messages:
        on_cpu = stacks["device"] == "cpu" and setting.flag in DEVICE_FLAGS
        fix = f"{remove}: this stack computes on the CPU" if on_cpu else messages[0]
        return Verdict(True, "from before Theano 1.0" + (f": {error}" if error else ""), fix)
    if error:
        return Verdict(True, f"Theano does not start: {error}", remove)
    if setting.flag not in stacks:
        return Verdict(True, "Theano has no such flag, and ignores it", remove)
    effect = EFFECTS[setting.flag](setting.value) if setting.flag in EFFECTS else ""
    return Verdict(bool(effect) and setting.value != rc.FAST_CXXFLAGS, effect, remove)


def _judge_ldflags(value: str) -> str:
    if not value:
        return "no BLAS is linked: NumPy computes the products"
    if "mkl_rt" in value:
        return "MKL chooses its own OpenMP: with two OpenMP run times, MKL computed wrong products"
    return "not the stack's BLAS"


DEVICE_FLAGS = ("contexts", "device", "init_gpu_device", "lib.cnmem")
NOT_SHIPPED = "no shipped module can be used: g++ compiles all modules"
# Maps a flag to a function that describes the effect of a value other than the stack's. The
# function returns "" if the value disables nothing. Other flags disable nothing.
EFFECTS: Mapping[str, Callable[[str], str]] = {
    "blas.ldflags": _judge_ldflags,
    "cache_optimizations": lambda _: "each process optimizes its graphs again",
    "cmodule.shipped": lambda _: NOT_SHIPPED,
    "cxx": lambda value: "not the stack's compiler" if value else "everything runs in Python",
    "gcc.cxxflags": lambda _: NOT_SHIPPED,
    "linker": lambda value: "everything runs in Python" if value == "py" else "",
    "openmp": lambda _: NOT_SHIPPED,
}


def find_problems(probed: Mapping[str, Any], usable: int) -> list[str]:
    """Return the problems of the compiler, the cache, the libraries and the device.

    A flag, such as ``cxx`` or ``device``, can cause a problem.

    Args:
        probed: the JSON of probe.py.
        usable: the number of CPUs that this process may use.
    """
    problems = []
    compiler, cache, device = probed["compiler"], probed["cache"], probed["device"]
    if "version" not in compiler:
        problems.append(
            f"no compiler: cxx={compiler['cxx']} cannot be run; remove the flag cxx to use the"
            " environment's g++"
        )
    elif compiler["error"]:
        problems.append(f"the compiler {compiler['cxx']} fails: {compiler['error']}")
    if not cache["writable"]:
        problems.append(f"the cache {cache['path']} is read-only: new modules are not cached")
    if cache["free"] < LEAST_FREE:
        free = cache["free"] / 2**20
        problems.append(f"only {free:.0f} MB are free for the cache: set base_compiledir")
    for kind, libraries in (("BLAS", probed["blas"]), ("OpenMP", probed["openmp"])):
        if len(libraries) > 1:
            names = ", ".join(library["library"] for library in libraries)
            problems.append(
                f"more than one {kind} is loaded, which may give wrong results: {names}"
            )
    device_flag = probed["flags"]["device"]
    if device_flag != "cpu" and not device["active"]:
        problems.append(
            f"device={device_flag} is not in use: Theano computes on the CPU; see docs/gpu.md, or"
            " set device=cpu"
        )
    for library in probed["blas"]:
        if library.get("threads", 0) > usable:
            problems.append(
                f"BLAS has {library['threads']} threads on {usable} CPUs: set OMP_NUM_THREADS"
            )
    return problems


def is_healthy(diagnosis: Mapping[str, Any]) -> bool:
    """Return whether nothing disables a part of the stack."""
    return not (diagnosis["error"] or diagnosis["problems"] or _count_faults(diagnosis))


def find_other_venv(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a problem if the active virtual environment has another Python."""
    active = environ.get("VIRTUAL_ENV", "")
    if not active or Path(active).resolve() == Path(sys.prefix).resolve():
        return
    python = Path(active, "bin", "python")
    if python.resolve() != Path(sys.executable).resolve():
        yield (
            f"the active virtual environment {active} has another Python, {python.resolve()}:"
            f" make a virtual environment with {sys.base_prefix}/bin/python -m venv DIR"
        )


def find_other_kernels(probed: Mapping[str, Any], without_variable: Mapping[str, Any]) -> list[str]:
    """Return a problem if CORE_VARIABLE selects other kernels than OpenBLAS selects itself.

    Args:
        probed: the JSON of probe.py.
        without_variable: the JSON of probe.py without the variable.
    """
    kernels, own_kernels = (
        [library["kernels"] for library in answer.get("blas", ()) if "kernels" in library]
        for answer in (probed, without_variable)
    )
    return [
        f"{CORE_VARIABLE} selects OpenBLAS's kernels for {selected}, which may be slower than the"
        f" kernels for this processor, {own}: unset {CORE_VARIABLE}"
        for selected, own in zip(kernels, own_kernels, strict=False)
        if selected != own
    ]


def _count_faults(diagnosis: Mapping[str, Any]) -> int:
    """Count settings that disable a part of the stack, and missing names that stop the program."""
    flags: int = sum(finding["verdict"]["disables_part"] for finding in diagnosis["findings"])
    return flags + sum(bool(name["required"]) for name in diagnosis["missing"])


def render(diagnosis: Mapping[str, Any]) -> str:
    """Format the diagnosis: missing names, each flag with its cost and fix, machine, verdict."""
    if diagnosis["error"]:
        return f"Theano does not start: {diagnosis['error']}"
    lines = [line for name in diagnosis["missing"] for line in _render_name(name)]
    for finding in diagnosis["findings"]:
        lines += _render_finding(finding, diagnosis["base"])
    lines += _render_machine(diagnosis)
    lines += [f"! {problem}" for problem in diagnosis["problems"]]
    count = _count_faults(diagnosis) + len(diagnosis["problems"])
    lines.append(
        f"{count} problem{'s' if count > 1 else ''} to fix"
        if count
        else "nothing disables a part of the stack"
    )
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


def _render_name(name: Mapping[str, Any]) -> Iterator[str]:
    mark = "!" if name["required"] else "-"
    more = f" and {name['count'] - 1} more" if name["count"] > 1 else ""
    yield f"{mark} {name['name']} is missing here: {name['location']}{more}"
    yield f"    fix: {name['fix']}"


def _render_finding(finding: Mapping[str, Any], base: Mapping[str, Any]) -> Iterator[str]:
    setting, verdict = finding["setting"], finding["verdict"]
    stacks = f", the stack's is {finding['stacks']}" if finding["stacks"] else ""
    mark = "!" if verdict["disables_part"] else "-"
    yield f"{mark} {setting['flag']}={setting['value']} in {setting['origin']}{stacks}"
    if verdict["effect"]:
        yield f"    {verdict['effect']}"
    if finding["costs"]:
        yield f"    a small training step: {_render_costs(finding['costs'], base)}"
    if verdict["disables_part"]:
        yield f"    fix: {verdict['fix']}"


def _render_costs(costs: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    if "error" in costs or "error" in base:
        return str(costs.get("error") or base["error"])
    parts = []
    for key, name in (("first", "first result after"), ("call", "a call takes")):
        ratio = costs[key] / base[key]
        if not 1 / NOTABLE < ratio < NOTABLE:
            times = f"{ratio:.0f}" if ratio > 10 else f"{ratio:.2g}"
            parts.append(f"{name} {costs[key]:.3g} s, {times} times the stack's {base[key]:.3g} s")
    return "; ".join(parts) or "as fast as with the stack's value"


def _render_machine(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    compiler, cache, host = diagnosis["compiler"], diagnosis["cache"], diagnosis["host"]
    if "version" in compiler:
        yield f"compiler  {compiler['version']}, {compiler['seconds']:.2f} s for an empty function"
    lock = f"locked by {cache['locked_by']}" if cache["locked_by"] else "not locked"
    yield (
        f"cache     {cache['files']} files, {cache['bytes'] / 2**20:.1f} MB, on"
        f" {cache['file_system']}, {cache['free'] / 2**30:.0f} GB free, {lock}:"
    )
    yield f"      {cache['path']}"
    variables = ", ".join(f"{name}={value}" for name, value in host["thread_variables"].items())
    yield f"threads   {host['cpus_usable']} of {host['cpus']} CPUs usable; {variables}"
    for library in diagnosis["blas"]:
        version = library.get("version", library.get("error"))
        yield f"BLAS      {version}, {library.get('threads', '?')} threads"
    contexts = diagnosis["device"]["contexts"].items()
    yield f"device    {', '.join(f'{name}: {device}' for name, device in contexts) or 'CPU'}"
    yield from (f"import theano prints: {line}" for line in diagnosis["says"])
