"""A Docker build context: a stack's environment as two archives, one for each layer."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from builder.environment import envs
from builder.environment.envs import Lock
from builder.package.channel import Package
from builder.package.engine import SOURCE_DATE_EPOCH
from builder.source.sources import sha256
from builder.stack.recipes import METAPACKAGE

# Where the environment is in an image.
PREFIX = Path("/opt/theano-fast")
# The packages that a change in runtime/ makes anew: the second archive.
LAST = ("theano-fast", METAPACKAGE)
# Licence texts, which a package has, but not what is installed from it.
LICENCES = Path("share", "licenses")
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
    code = (__file__, envs.__file__)
    inputs = [*(sha256(Path(file)) for file in code), *(package.sha256 for package in rest)]
    key = hashlib.sha256("\n".join(inputs).encode()).hexdigest()
    # Beside the context, not in it. Its absence says that dependencies.tar is to be written.
    mark = directory.with_suffix(".dependencies")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".prefix-") as temporary:
        prefix = Path(temporary)
        _install(lock, prefix)
        own = {file for package in last for file in _files(prefix, package)}
        if not mark.exists() or mark.read_text(encoding="utf-8") != key:
            mark.unlink(missing_ok=True)
            everything = {file for file in prefix.rglob("*") if not file.is_dir()}
            archive(directory / "dependencies.tar", prefix, sorted(everything - own), SHARED)
            mark.write_text(key, encoding="utf-8")
        archive(directory / "stack.tar", prefix, sorted(own))


def _install(lock: Lock, prefix: Path) -> None:
    envs.install(lock.files, prefix, "the image's environment", PREFIX)
    for package in lock.packages:
        file = _record(prefix, package.file.stem)
        record = json.loads(file.read_text(encoding="utf-8"))
        texts = Path(record["extracted_package_dir"], "info", "licenses")
        shutil.copytree(texts, prefix / LICENCES / package.name)
        # Where this host has its channel and its cache is no business of the image's.
        record["url"] = f"file:///{package.path}"
        for key in ("extracted_package_dir", "package_tarball_full_path", "link"):
            record.pop(key, None)
        file.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _record(prefix: Path, package: str) -> Path:
    return prefix / "conda-meta" / f"{package}.json"


def _files(prefix: Path, package: Package) -> list[Path]:
    record = _record(prefix, package.file.stem)
    listed = [prefix / name for name in json.loads(record.read_text(encoding="utf-8"))["files"]]
    bytecode = [
        file
        for module in listed
        for file in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc")
    ]
    texts = [file for file in (prefix / LICENCES / package.name).rglob("*") if file.is_file()]
    return [record, *texts, *listed, *bytecode]


def archive(
    target: Path, root: Path, files: Sequence[Path], directories: Sequence[Path] = ()
) -> None:
    """Write files below ``root`` into a tar archive as files below PREFIX.

    Owner, times and modes are the same whoever writes it; ``directories`` are absolute, empty
    and writable for all.
    """
    places = {PREFIX / file.relative_to(root): file for file in files}
    parents = {parent for place in (*places, *directories) for parent in place.parents}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for place in sorted({*parents, *directories} - {Path("/")}):
            mode = 0o1777 if place in directories else 0o755
            tar.addfile(_member(place, tarfile.DIRTYPE, mode))
        for place, file in sorted(places.items()):
            if file.is_symlink():
                member = _member(place, tarfile.SYMTYPE, 0o777)
                member.linkname = str(file.readlink())
                tar.addfile(member)
            else:
                status = file.stat()
                member = _member(place, tarfile.REGTYPE, 0o755 if status.st_mode & 0o100 else 0o644)
                member.size = status.st_size
                with file.open("rb") as stream:
                    tar.addfile(member, stream)


def _member(place: Path, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(str(place.relative_to("/")))
    member.type, member.mode, member.mtime = kind, mode, SOURCE_DATE_EPOCH
    return member
