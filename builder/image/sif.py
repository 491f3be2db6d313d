"""Build a SIF file for Apptainer from an OCI archive, and write its definition file."""

from __future__ import annotations

import shutil
from pathlib import Path

from builder.common.errors import CommandFailed, HostToolMissing, ImageFailed
from builder.common.processes import run

# Unlike the Docker image, %runscript does not start tini: a program in Apptainer's container gets
# the signals of its caller.
DEFINITION = """Bootstrap: oci-archive
From: {archive}

%runscript
    if [ $# -gt 0 ]; then exec "$@"; fi
    theano-fast info && exec theano-fast verify

%test
    theano-fast verify
"""


def build_sif(archive: Path, target: Path) -> None:
    """Build a SIF file from an OCI archive; write the definition file next to the archive.

    Raises:
        HostToolMissing: Apptainer is not on PATH. The definition file is written in this case too.
        ImageFailed: Apptainer could not build the file.
    """
    definition = archive.with_suffix(".def")
    definition.write_text(DEFINITION.format(archive=archive.name), encoding="utf-8")
    if shutil.which("apptainer") is None:
        raise HostToolMissing(
            "apptainer is not on PATH",
            f"copy {definition} and {archive.name} to a machine with Apptainer; there: "
            f"apptainer build {target.name} {definition.name}",
        )
    part = target.with_name(f".{target.name}.part")
    try:
        # --notest: the image is verified already; %test is for the machine that runs the image.
        run(
            ["apptainer", "build", "--force", "--notest", part, definition.name],
            cwd=definition.parent,
        )
        part.replace(target)
    except CommandFailed as error:
        raise ImageFailed(f"{target} could not be built: {error}") from error
    finally:
        part.unlink(missing_ok=True)
