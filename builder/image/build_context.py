"""A Docker build context: a stack's environment as two archives, one for each layer."""

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

# Where the environment is in an image.
PREFIX = Path("/opt/theano-fast")
# The packages that a change in runtime/ makes anew: the second archive.
LAST = ("theano-fast", METAPACKAGE)
# Directories that any user may write to: the home and the working directory.
SHARED = (Path("/home/theano"), Path("/work"))


def write(lock: Lock, directory: Path) -> None:
    """Write ``dependencies.tar`` and ``stack.tar``, whose bytes depend on the lock only.

    Raises:
        EnvironmentFailed: the environment could not be installed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    last = [package for package in lock.packages if package.name in LAST]
    rest = [package for package in lock.packages if package.name not in LAST]
    # Its bytes are made here, and where an environment is installed and compiled.
    code = (__file__, archives.__file__, envs.__file__)
    inputs = [*(sha256(Path(file)) for file in code), *(package.sha256 for package in rest)]
    key = hashlib.sha256("\n".join(inputs).encode()).hexdigest()
    # Beside the context, not in it. Its absence says that dependencies.tar is to be written.
    mark = directory.with_suffix(".dependencies")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".prefix-") as temporary:
        prefix = Path(temporary)
        archives.install(lock, prefix, PREFIX, "the image's environment")
        own = {file for package in last for file in _files(prefix, package)}
        if not mark.exists() or mark.read_text(encoding="utf-8") != key:
            mark.unlink(missing_ok=True)
            everything = set(archives.files(prefix))
            _write(directory / "dependencies.tar", prefix, everything - own, SHARED)
            mark.write_text(key, encoding="utf-8")
        _write(directory / "stack.tar", prefix, own)


def _files(prefix: Path, package: Package) -> list[Path]:
    record = archives.record(prefix, package.file.stem)
    listed = [prefix / name for name in json.loads(record.read_text(encoding="utf-8"))["files"]]
    bytecode = [
        file
        for module in listed
        for file in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc")
    ]
    texts = [file for file in (prefix / LICENCES / package.name).rglob("*") if file.is_file()]
    return [record, *texts, *listed, *bytecode]


def _write(
    target: Path, root: Path, files: Iterable[Path], directories: Sequence[Path] = ()
) -> None:
    with target.open("wb") as stream:
        archives.write(stream, root, files, PREFIX, directories)
