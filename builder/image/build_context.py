"""Write a Docker build context: a stack's environment as two tar archives, one for each layer."""

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
from builder.source.sources import hash_file
from builder.stack.recipes import METAPACKAGE

# The environment's prefix in an image.
PREFIX = Path("/opt/theano-fast")
# A change in runtime/ rebuilds these packages. Only the second archive contains them, so Docker
# caches the layer of the first archive.
STACK_PACKAGES = ("theano-fast", METAPACKAGE)
# The home directory and the working directory in an image. Any user may write to them.
SHARED = (Path("/home/theano"), Path("/work"))


def write_context(lock: Lock, directory: Path) -> None:
    """Write ``dependencies.tar`` and ``stack.tar`` into ``directory``.

    Their bytes depend only on the packages of ``lock``. Keep an existing ``dependencies.tar`` if
    its inputs have not changed.

    Raises:
        EnvironmentFailed: the environment could not be installed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    stack_packages = [package for package in lock.packages if package.name in STACK_PACKAGES]
    dependencies = [package for package in lock.packages if package.name not in STACK_PACKAGES]
    # The code that determines the bytes of dependencies.tar.
    code = (__file__, archives.__file__, envs.__file__)
    inputs = [
        *(hash_file(Path(file)) for file in code),
        *(package.sha256 for package in dependencies),
    ]
    key = hashlib.sha256("\n".join(inputs).encode()).hexdigest()
    # The file with the cache key of dependencies.tar. It is next to the context, because Docker
    # sends all files of the context to its daemon.
    key_file = directory.with_suffix(".dependencies")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".prefix-") as temporary:
        prefix = Path(temporary)
        archives.install_relocated(lock, prefix, PREFIX, "the image's environment")
        stack_files = {
            file for package in stack_packages for file in _list_package_files(prefix, package)
        }
        if not key_file.exists() or key_file.read_text(encoding="utf-8") != key:
            key_file.unlink(missing_ok=True)
            all_files = set(archives.list_files(prefix))
            _write_archive(directory / "dependencies.tar", prefix, all_files - stack_files, SHARED)
            key_file.write_text(key, encoding="utf-8")
        _write_archive(directory / "stack.tar", prefix, stack_files)


def _list_package_files(prefix: Path, package: Package) -> list[Path]:
    """List a package's record, licence texts, files and bytecode in ``prefix``."""
    record = archives.get_record_path(prefix, package.file.stem)
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


def _write_archive(
    target: Path, root: Path, files: Iterable[Path], directories: Sequence[Path] = ()
) -> None:
    with target.open("wb") as stream:
        archives.write_tar(stream, root, files, PREFIX, directories)
