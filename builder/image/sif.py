"""Apptainer's form of an image, a SIF file, and the definition file that anyone can build it by."""

from __future__ import annotations

import shutil
from pathlib import Path

from builder.common.errors import CommandFailed, HostToolMissing, ImageFailed
from builder.common.processes import run

# No tini, as the entrypoint has it: Apptainer's containers have their caller's signals.
DEFINITION = """Bootstrap: oci-archive
From: {archive}

%runscript
    if [ $# -gt 0 ]; then exec "$@"; fi
    theano-fast info && exec theano-fast verify

%test
    theano-fast verify
"""


def build(archive: Path, target: Path) -> None:
    """Build a SIF of an OCI archive, by a definition file written beside the archive.

    Raises:
        HostToolMissing: there is no Apptainer; the definition file is there.
        ImageFailed: it could not build it.
    """
    definition = archive.with_suffix(".def")
    definition.write_text(DEFINITION.format(archive=archive.name), encoding="utf-8")
    if shutil.which("apptainer") is None:
        raise HostToolMissing(
            "apptainer is not on PATH",
            f"where it is, with {definition} and {archive.name} beside it: "
            f"apptainer build {target.name} {definition.name}",
        )
    part = target.with_name(f".{target.name}.part")
    try:
        # Its image was verified; %test is for where it will run.
        run(
            ["apptainer", "build", "--force", "--notest", part, definition.name],
            cwd=definition.parent,
        )
        part.replace(target)
    except CommandFailed as error:
        raise ImageFailed(f"{target} could not be built: {error}") from error
    finally:
        part.unlink(missing_ok=True)
