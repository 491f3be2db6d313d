"""A stack's environment as one archive, to be unpacked anywhere on machines without conda.

conda-pack's archives need a Python of the host's to be unpacked, and an activated environment
after that; and no two of them are the same.
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

# What an environment has where its path is to be put, as long as conda's own: a binary file has
# room for no longer path.
PLACEHOLDER = Path(("/" + "theano-fast-placeholder/" * 11)[:255])
UNPACK = Path("bin", "theano-fast-unpack")
# theano_fast.unpack reads it.
LIST = Path("share", "theano-fast", "unpack.json")
SCRIPT = """#!/bin/sh
# Tell this environment where it is, once, after it was unpacked.
bin=$(cd "$(dirname "$0")" && pwd) || exit
if ! said=$("$bin/python" -c '' 2>&1); then
    echo "theano-fast-unpack: $bin/python does not start; it needs glibc GLIBC or newer." >&2
    echo "$said" | head -n 1 >&2
    exit 1
fi
exec "$bin/python" -I -m theano_fast.unpack
"""


def top(stack: str) -> str:
    """The directory that a stack's archive has all its files in."""
    return f"theano-fast-{stack}"


def write(lock: Lock, glibc: str, target: Path) -> None:
    """Write a lock's environment as a gzip-compressed tar archive; the bytes are always the same.

    Args:
        glibc: the oldest version of the C library that it runs on.

    Raises:
        EnvironmentFailed: it could not be installed.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".prefix-") as directory:
        prefix = Path(directory)
        archives.install(lock, prefix, PLACEHOLDER, "the environment to pack")
        (prefix / UNPACK).write_text(SCRIPT.replace("GLIBC", glibc), encoding="utf-8")
        (prefix / UNPACK).chmod(0o755)
        listed = {"files": _with_placeholder(prefix), "placeholder": str(PLACEHOLDER)}
        (prefix / LIST).parent.mkdir(parents=True, exist_ok=True)
        (prefix / LIST).write_text(json.dumps(listed, sort_keys=True), encoding="utf-8")
        with (
            target.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream,
        ):
            archives.write(stream, prefix, archives.files(prefix), Path("/", top(lock.stack)))


def _with_placeholder(prefix: Path) -> list[str]:
    """The files that are not links and have PLACEHOLDER, but for bytecode: Python mends its own."""
    wanted = bytes(PLACEHOLDER)
    return [
        str(file.relative_to(prefix))
        for file in archives.files(prefix)
        if file.suffix != ".pyc" and not file.is_symlink() and wanted in file.read_bytes()
    ]


def prove(archive: Path, stack: str) -> None:
    """Unpack an archive elsewhere, as another user where this one is root, and let it verify.

    Raises:
        EnvironmentFailed: it could not be unpacked.
        VerifyFailed: a check failed.
    """
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as directory:
        Path(directory).chmod(0o777)
        shutil.copyfile(archive, Path(directory, archive.name))
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        as_another = user if os.geteuid() == 0 else []
        environ = {"PATH": os.environ["PATH"], "HOME": directory, "TMPDIR": directory}
        start = partial(processes.run, env=environ, cwd=Path(directory))
        try:
            start([*as_another, "tar", "-xzf", archive.name])
            start([*as_another, f"{top(stack)}/{UNPACK}"])
        except CommandFailed as error:
            raise EnvironmentFailed(f"{archive} does not unpack: {error}") from error
        verify = [*as_another, f"{top(stack)}/bin/theano-fast", "verify"]
        done = start(verify, check=False)
        if done.status != 0:
            raise VerifyFailed(
                f"unpacked elsewhere, stack {stack} does not prove itself:\n{done.output.rstrip()}"
            )
