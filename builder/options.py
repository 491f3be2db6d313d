"""Declare the flags that several tasks share, with their defaults and help texts.

``tasks.py`` imports this module before the builder's tools are installed. Therefore this module
imports only the standard library and ``builder.common.errors``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from builder.common.errors import UsageError


@dataclass(frozen=True)
class Options:
    """The values of the shared flags.

    Raises:
        UsageError: a flag names a file or directory that does not exist.
    """

    sources: Path | None = field(
        default=None, metadata={"help": "directory to search for sources before any download"}
    )
    offline: bool = field(default=False, metadata={"help": "download nothing"})
    engine: str = field(
        default="rattler-build",
        metadata={"help": "rattler-build, or conda-build (>= 26.5) on PATH"},
    )
    jobs: int = field(
        default=0,
        metadata={"help": "number of recipes to build at once (default: number of CPUs + 1)"},
    )
    bundle: Path | None = field(
        default=None,
        metadata={"help": "archive from `./invoke fetch --bundle`; all sources come from it"},
    )
    amdlibm_archive: Path | None = field(
        default=None,
        metadata={"help": "AMD's release archive of AOCL-LibM; replaces the open-source amdlibm"},
    )
    locked: bool = field(
        default=False,
        metadata={"help": "fail if the packages differ from the lock file in envs/<stack>"},
    )
    timings: bool = field(
        default=False,
        metadata={
            "help": "print a chart of the build times; JSON: build/reports/<stack>-timings.json"
        },
    )

    def __post_init__(self) -> None:
        if self.sources and not self.sources.is_dir():
            raise UsageError(
                f"--sources: {self.sources} is not a directory",
                "name a directory that ./invoke fetch --to wrote",
            )
        if self.bundle and not self.bundle.is_file():
            raise UsageError(
                f"--bundle: {self.bundle} is not a file",
                "name a file that ./invoke fetch --bundle wrote",
            )
        if self.amdlibm_archive and not self.amdlibm_archive.is_file():
            raise UsageError(
                f"--amdlibm-archive: {self.amdlibm_archive} is not a file",
                "name AMD's release archive of AOCL-LibM",
            )

    def make_pip_flags(self) -> list[str]:
        """Return flags with which pip installs hash-pinned requirements.

        pip also searches the directory ``sources``. If ``offline`` is set, pip uses no index.
        """
        flags = ["--disable-pip-version-check", "--require-hashes"]
        flags += [f"--find-links={self.sources}"] if self.sources else []
        return flags + (["--no-index"] if self.offline else [])
