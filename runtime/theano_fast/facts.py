"""Facts of the host, and of the environment as far as they can be had without importing it."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from theano_fast import threads

DISTRIBUTIONS = ("numpy", "scipy", "Theano")
# Of each package that has them, a list of the fixes that were applied to its sources.
FIXES = Path("share", "theano-fast", "fixes")
# Of an amdlibm of AMD's own library, what a survey found of its functions when it was packaged.
AMDLIBM = Path("share", "theano-fast", "amdlibm.tsv")


def host() -> dict[str, Any]:
    """Return facts of the machine and of what this process may use of it; needs no library."""
    quota = threads.cgroup_quota()
    return {
        "architecture": platform.machine(),
        "cgroup_cpus": quota,
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "cpus": os.cpu_count(),
        "cpus_usable": threads.available(),
        "glibc": platform.libc_ver()[1],
        "kernel": platform.release(),
        "thread_variables": {
            name: os.environ[name]
            for name in (*threads.USER_VARIABLES, threads.MARK)
            if name in os.environ
        },
    }


def cpu_model(cpuinfo: str) -> str:
    """Return the CPU's name from the text of /proc/cpuinfo, "unknown" if it gives none."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that make a stack."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name.lower()] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name.lower()] = "not installed"
    return found


def fixes(prefix: str | Path = sys.prefix) -> dict[str, list[str]]:
    """Return the CVEs that were mended in the packages of the environment at prefix."""
    return {
        file.name: sorted(cves(file.read_text()), key=lambda cve: [*map(int, cve.split("-")[1:])])
        for file in sorted(Path(prefix, FIXES).glob("*"))
    }


def cves(text: str) -> set[str]:
    """Return the CVEs of a list of fixes, whose lines are a patch's name and CVEs."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {word for line in lines for word in line[1:]}


def amdlibm(prefix: str | Path = sys.prefix) -> dict[str, Any]:
    """Return which functions of an amdlibm of AMD's library are AMD's, and why others are not.

    Empty without AMD's library.
    """
    try:
        text = Path(prefix, AMDLIBM).read_text()
    except FileNotFoundError:
        return {}
    # The columns are those of checks/survey.c.
    rows = [line.split("\t") for line in text.splitlines()]
    bound = [float(error) for _, _, _, error, wrong in rows if not wrong]
    known: dict[str, Any] = {
        "functions": f"{len(bound)} of AMD's, within {max(bound, default=0):.2f} ulp"
    }
    for _, function, lanes, _, wrong in rows:
        name = function + (f" of {lanes} lanes" if lanes != "1" else "")
        if wrong in ("is missing", "was not run"):
            known.setdefault(f"AMD's {wrong}", []).append(name)
        elif wrong:
            known.setdefault("AMD's is wrong", {})[name] = f"AMD's {wrong}"
    return known
