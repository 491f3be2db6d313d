"""Facts of the host, and of the environment as far as they can be had without importing it."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from theano_fast import threads

DISTRIBUTIONS = ("numpy", "scipy", "Theano")


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
