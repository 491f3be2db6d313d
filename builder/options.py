"""Declare the flags that several commands share, each with its default and its help text.

``tasks.py`` imports this module before the builder's tools are installed. Therefore it imports only
the standard library and ``errors``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from builder.common.errors import UsageError


@dataclass(frozen=True)
class Options:
    """The flags of a build; a flag with the default None is a path.

    Raises:
        UsageError: the file or directory that a flag names does not exist.
    """

    sources: Path | None = field(
        default=None, metadata={"help": "directory to search for sources before any download"}
    )
    offline: bool = field(default=False, metadata={"help": "download nothing"})
    engine: str = field(
        default="rattler-build",
        metadata={"help": "rattler-build, or conda-build (>= 26.5) from PATH"},
    )
    jobs: int = field(
        default=0,
        metadata={"help": "number of recipes to build at once (default: number of CPUs + 1)"},
    )
    bundle: Path | None = field(
        default=None,
        metadata={"help": "archive of `invoke fetch --bundle`: take all sources from it"},
    )
    amdlibm_archive: Path | None = field(
        default=None,
        metadata={"help": "AMD's release archive of AOCL-LibM, to replace the open-source amdlibm"},
    )
    locked: bool = field(
        default=False,
        metadata={"help": "fail if the packages differ from the lock in envs/<stack>"},
    )
    timings: bool = field(
        default=False,
        metadata={
            "help": "print a chart of the build times; as JSON: build/reports/<stack>-timings.json"
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

    def pip_flags(self) -> list[str]:
        """Return pip's flags for hash-pinned requirements from these sources."""
        flags = ["--disable-pip-version-check", "--require-hashes"]
        flags += [f"--find-links={self.sources}"] if self.sources else []
        return flags + (["--no-index"] if self.offline else [])
