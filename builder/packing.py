"""Write a stack as an archive for machines without conda, and verify the archive."""

from __future__ import annotations

import tempfile
from pathlib import Path

from builder.common import paths, progress
from builder.environment import packs
from builder.options import Options
from builder.pipeline import Build
from builder.source import sources
from builder.stack import stacks, toolchain


def pack_stack(name: str, options: Options, target: Path | None = None) -> Path:
    """Write a stack's archive under a temporary name, verify an unpacked copy, and rename it.

    Args:
        target: the path of the archive; by default ``build/packs/theano-fast-<stack>.tar.gz``.

    Returns:
        The path of the archive.

    Raises:
        UsageError: the stack has Python 2.7, which cannot run the archive's unpack program.
        VerifyFailed: a check of the unpacked copy failed. No archive is then written to ``target``.
    """
    image_hint = f"take an image to the other machine: ./invoke image --stack={name}"
    stacks.load_with_python_3(name, "pack", image_hint)
    build = Build.create(name, options, ("pack", "verification"))
    lock = build.lock()
    file = target or paths.PACKS / f"{packs.get_top_directory(lock.stack)}.tar.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as directory:
        part = Path(directory, file.name)
        with build.steps.run_step("pack") as step:
            packs.write_archive(lock, toolchain.read_oldest_glibc(), part)
            step.result = f"{part.stat().st_size / 1e6:.0f} MB"
        with build.steps.run_step("verification"):
            packs.verify_archive(part, lock.stack)
        part.replace(file)
    progress.say(f"{sources.hash_file(file)}  {progress.display_path(file)}")
    progress.conclude(
        f"{lock.stack}: {progress.display_path(file)}; on the other machine, unpack it with "
        f"tar -xzf, and run {packs.get_top_directory(lock.stack)}/{packs.UNPACK}"
    )
    return file
