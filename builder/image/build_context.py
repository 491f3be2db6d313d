"""Write a Docker build context: a stack's environment as two archives, one for each layer."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from builder.environment import archives, envs
from builder.environment.archives import LICENCES
from builder.environment.envs import Lock
from builder.package.channel import Package
from builder.source.sources import sha256
from builder.stack.recipes import METAPACKAGE

# The environment's prefix in an image.
PREFIX = Path("/opt/theano-fast")
# The packages that change with runtime/. They are in the second archive.
LAST = ("theano-fast", METAPACKAGE)
# Directories that any user may write to: the home and the working directory.
SHARED = (Path("/home/theano"), Path("/work"))


def write_context(lock: Lock, directory: Path) -> None:
    """Write ``dependencies.tar`` and ``stack.tar``; their bytes depend on the lock only.

    Raises:
        EnvironmentFailed: the environment could not be installed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    stack_packages = [package for package in lock.packages if package.name in LAST]
    dependencies = [package for package in lock.packages if package.name not in LAST]
    # The code that determines the bytes of dependencies.tar.
    code = (__file__, archives.__file__, envs.__file__)
    inputs = [*(sha256(Path(file)) for file in code), *(package.sha256 for package in dependencies)]
    key = hashlib.sha256("\n".join(inputs).encode()).hexdigest()
    # The key of dependencies.tar. It is next to the context, because Docker sends all files of the
    # context to its daemon.
    mark = directory.with_suffix(".dependencies")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".prefix-") as temporary:
        prefix = Path(temporary)
        archives.install_relocated(lock, prefix, PREFIX, "the image's environment")
        stack_files = {file for package in stack_packages for file in _list_files(prefix, package)}
        if not mark.exists() or mark.read_text(encoding="utf-8") != key:
            mark.unlink(missing_ok=True)
            everything = set(archives.list_files(prefix))
            _write(directory / "dependencies.tar", prefix, everything - stack_files, SHARED)
            mark.write_text(key, encoding="utf-8")
        _write(directory / "stack.tar", prefix, stack_files)


def _list_files(prefix: Path, package: Package) -> list[Path]:
    record = archives.record_path(prefix, package.file.stem)
    package_files = [
        prefix / name for name in json.loads(record.read_text(encoding="utf-8"))["files"]
    ]
    bytecode = [
        file
        for module in package_files
        for file in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc")
    ]
    texts = [file for file in (prefix / LICENCES / package.name).rglob("*") if file.is_file()]
    return [record, *texts, *package_files, *bytecode]


def _write(
    target: Path, root: Path, files: Iterable[Path], directories: Sequence[Path] = ()
) -> None:
    with target.open("wb") as stream:
        archives.write_tar(stream, root, files, PREFIX, directories)
