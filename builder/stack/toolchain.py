"""The host's compilers: which they are, and what their output needs at run time."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from builder.common.errors import CommandFailed, HostToolMissing
from builder.common.processes import run

COMPILERS = ("gcc", "g++", "gfortran")
# The releases of gcc that every recipe has been built with: those of Debian 12.
KNOWN = ("12",)
HINT = "as root, run: apt-get install gcc g++ gfortran make patch"


@dataclass(frozen=True)
class Toolchain:
    """The compilers that build packages, and the C library they link to."""

    gcc: str
    glibc: str
    banner: str

    @property
    def variant(self) -> dict[str, str]:
        """The variant keys that recipes read, under conda-forge's names."""
        return {"gcc_version": self.gcc, "c_stdlib_version": self.glibc}


def probe() -> Toolchain:
    """Ask the host's compilers for their versions.

    Raises:
        HostToolMissing: one is not on PATH, or they are of different releases.
    """
    missing = [tool for tool in (*COMPILERS, "make", "patch") if shutil.which(tool) is None]
    if missing:
        raise HostToolMissing(f"not on PATH: {', '.join(missing)}", HINT)
    try:
        versions = {tool: run([tool, "-dumpfullversion"]).output.strip() for tool in COMPILERS}
    except CommandFailed as error:
        raise HostToolMissing(f"a compiler does not run: {error}", HINT) from error
    if len(set(versions.values())) != 1:
        found = ", ".join(f"{tool} {version}" for tool, version in versions.items())
        raise HostToolMissing(f"compilers of different releases: {found}", HINT)
    glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    if not glibc:
        raise HostToolMissing("the C library is not glibc", "build on a GNU/Linux host")
    banner = "\n".join(run([tool, "--version"]).output.splitlines()[0] for tool in ("gcc", "ld"))
    return Toolchain(versions["gcc"], glibc, banner)


def require_known(toolchain: Toolchain) -> None:
    """Refuse to build with compilers that no recipe was tried with.

    Raises:
        HostToolMissing: they are of no KNOWN release.
    """
    if toolchain.gcc.partition(".")[0] not in KNOWN:
        raise HostToolMissing(
            f"gcc {toolchain.gcc}: packages are known to build with gcc {', '.join(KNOWN)}",
            "build on Debian 12; what is built there can be carried elsewhere (docs/conda.md)",
        )
