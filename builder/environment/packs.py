"""Write a stack's environment as an archive that runs in any directory, without conda.

conda-pack is not suitable. Its archives are not reproducible, the host needs a Python to unpack
them, and the user must activate the environment.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

from builder.common import processes
from builder.common.errors import CommandFailed, EnvironmentFailed, VerifyFailed
from builder.environment import archives
from builder.environment.envs import Lock

# The prefix in the archive's files, which bin/theano-fast-unpack replaces. It is as long as conda's
# own placeholder, 255 bytes, because binary files have no room for a longer path.
PLACEHOLDER = Path(("/" + "theano-fast-placeholder/" * 11)[:255])
UNPACK = Path("bin", "theano-fast-unpack")
# The list of the files that contain PLACEHOLDER. theano_fast.unpack reads it.
LIST = Path("share", "theano-fast", "unpack.json")
SCRIPT = """#!/bin/sh
# Write the prefix of this environment into its files, once, after unpacking.
bin=$(cd "$(dirname "$0")" && pwd) || exit
if ! error=$("$bin/python" -c '' 2>&1); then
    echo "theano-fast-unpack: $bin/python does not start; it needs glibc GLIBC or newer." >&2
    echo "$error" | head -n 1 >&2
    exit 1
fi
exec "$bin/python" -I -m theano_fast.unpack
"""


def get_top_directory(stack: str) -> str:
    """Return the name of the top directory of a stack's archive."""
    return f"theano-fast-{stack}"


def write_archive(lock: Lock, glibc: str, target: Path) -> None:
    """Install the packages of ``lock`` and write them as a reproducible archive ``.tar.gz``.

    Args:
        glibc: the oldest version of glibc on which the environment runs, such as 2.28. The unpack
            program prints it if the environment does not run.
        target: the path of the archive.

    Raises:
        EnvironmentFailed: the environment could not be installed.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".prefix-") as directory:
        prefix = Path(directory)
        archives.install_relocated(lock, prefix, PLACEHOLDER, "the environment to pack")
        (prefix / UNPACK).write_text(SCRIPT.replace("GLIBC", glibc), encoding="utf-8")
        (prefix / UNPACK).chmod(0o755)
        placeholder_list = {
            "files": _find_files_with_placeholder(prefix),
            "placeholder": str(PLACEHOLDER),
        }
        (prefix / LIST).parent.mkdir(parents=True, exist_ok=True)
        (prefix / LIST).write_text(json.dumps(placeholder_list, sort_keys=True), encoding="utf-8")
        with (
            target.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream,
        ):
            archives.write_tar(
                stream,
                prefix,
                archives.list_files(prefix),
                Path("/", get_top_directory(lock.stack)),
            )


def _find_files_with_placeholder(prefix: Path) -> list[str]:
    """List the files that contain PLACEHOLDER, except symlinks and bytecode.

    When Python imports a module, it corrects the path in the module's bytecode.
    """
    placeholder = bytes(PLACEHOLDER)
    return [
        str(file.relative_to(prefix))
        for file in archives.list_files(prefix)
        if file.suffix != ".pyc" and not file.is_symlink() and placeholder in file.read_bytes()
    ]


def verify_archive(archive: Path, stack: str) -> None:
    """Unpack an archive in a temporary directory and run its ``theano-fast verify``.

    If this process is root, do both as an unprivileged user.

    Raises:
        EnvironmentFailed: the archive could not be unpacked.
        VerifyFailed: a check failed.
    """
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as directory:
        Path(directory).chmod(0o777)
        shutil.copyfile(archive, Path(directory, archive.name))
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        user_command = user if os.geteuid() == 0 else []
        environ = {"PATH": os.environ["PATH"], "HOME": directory, "TMPDIR": directory}
        start = partial(processes.run, env=environ, cwd=Path(directory))
        try:
            start([*user_command, "tar", "-xzf", archive.name])
            start([*user_command, f"{get_top_directory(stack)}/{UNPACK}"])
        except CommandFailed as error:
            raise EnvironmentFailed(f"{archive} cannot be unpacked: {error}") from error
        verify = [*user_command, f"{get_top_directory(stack)}/bin/theano-fast", "verify"]
        finished = start(verify, check=False)
        if finished.status != 0:
            raise VerifyFailed(
                f"verification of the unpacked archive of {stack} failed:\n"
                f"{finished.output.rstrip()}"
            )
