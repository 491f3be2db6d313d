"""Describe the host and the environment's packages, without importing the packages."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from theano_fast import threads

DISTRIBUTIONS = ("numpy", "scipy", "Theano")
# A directory with a file for each package, which lists the security fixes in the package's sources.
FIXES = Path("share", "theano-fast", "fixes")
# The output of checks/survey.c for AMD's library, written when amdlibm was packaged.
AMDLIBM = Path("share", "theano-fast", "amdlibm.tsv")


def describe_host() -> dict[str, Any]:
    """Return facts about the machine, and the CPUs that this process may use."""
    quota = threads.read_cgroup_quota()
    return {
        "architecture": platform.machine(),
        "cgroup_cpus": quota,
        "cpu": parse_cpu_model(Path("/proc/cpuinfo").read_text()),
        "cpus": os.cpu_count(),
        "cpus_usable": threads.count_available(),
        "glibc": platform.libc_ver()[1],
        "kernel": platform.release(),
        "thread_variables": {
            name: os.environ[name]
            for name in (*threads.USER_VARIABLES, threads.MARK)
            if name in os.environ
        },
    }


def parse_cpu_model(cpuinfo: str) -> str:
    """Return the CPU's name from the text of /proc/cpuinfo, or "unknown"."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return "unknown"


def list_versions() -> dict[str, str]:
    """Return the versions of Python and of the stack's main packages, by name."""
    by_name = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            by_name[name.lower()] = metadata.version(name)
        except metadata.PackageNotFoundError:
            by_name[name.lower()] = "not installed"
    return by_name


def read_fixes(prefix: str | Path = sys.base_prefix) -> dict[str, list[str]]:
    """Return the CVEs that are fixed in the environment at prefix, by package."""
    return {
        file.name: sorted(
            parse_cves(file.read_text()), key=lambda cve: [*map(int, cve.split("-")[1:])]
        )
        for file in sorted(Path(prefix, FIXES).glob("*"))
    }


def parse_cves(text: str) -> set[str]:
    """Return the CVEs in a list of fixes; each line has a patch's name, then the CVEs it fixes."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {word for line in lines for word in line[1:]}


def read_amdlibm(prefix: str | Path = sys.base_prefix) -> dict[str, Any]:
    """Describe AMD's functions in amdlibm, and the reasons why amdlibm rejects others.

    Return {} if the environment's amdlibm was built without AMD's library.
    """
    try:
        text = Path(prefix, AMDLIBM).read_text()
    except FileNotFoundError:
        return {}
    # checks/survey.c describes the columns.
    rows = [line.split("\t") for line in text.splitlines()]
    errors = [float(error) for _, _, _, error, wrong in rows if not wrong]
    tree: dict[str, Any] = {
        "functions": f"{len(errors)} functions of AMD's library, with errors of at most"
        f" {max(errors, default=0):.2f} ulp"
    }
    for _, function, lanes, _, wrong in rows:
        name = function + (f" of {lanes} lanes" if lanes != "1" else "")
        if wrong in ("is missing", "was not run"):
            tree.setdefault(f"AMD's {wrong}", []).append(name)
        elif wrong:
            tree.setdefault("AMD's is wrong", {})[name] = f"AMD's {wrong}"
    return tree
