"""Rewrite packages in a canonical form, so that every build of a recipe produces the same bytes.

In the engine's packages, the prefix placeholder and the channel's address contain the path of the
build directory. The build IDs of binaries and pip's hashes depend on the placeholder. The
dependencies have the order of a hash table. Bytecode contains the times of its sources. This module
replaces these values by values that do not depend on the build. The engine derives the dependency
on glibc from the build's environment. This module derives it from the package's binaries: the
oldest version that they run on.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import zstandard

from builder.common import elf
from builder.common.errors import BuildFailed
from builder.package import binaries

# It has the length of the engine's placeholder and of the longest prefix that conda supports.
PLACEHOLDER = ("/theano-fast" + "_placehold" * 25)[:255].encode()
CHANNEL = "theano-fast"
COMPRESSION_LEVEL = 15

# The note in which a linker stores the SHA-1 of its output (elf.h: Elf64_Nhdr).
BUILD_ID = re.compile(rb"(?<=\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0).{20}", re.DOTALL)
# The hashes and sizes in pip's RECORD. They are optional. They are wrong in a package, because the
# engine relinks the files after pip. paths.json has the correct hashes.
RECORD_HASH = re.compile(rb",sha256=[^,]+,\d+(?=\r?$)", re.MULTILINE)

Member = tuple[tarfile.TarInfo, bytes]
# The files in a package that read_metadata reads.
METADATA_FILES = tuple(f"info/{name}.json" for name in ("index", "paths", "about", "run_exports"))


def canonicalize(
    package: Path, directory: Path, epoch: int, *, relinked: bool = True
) -> dict[str, elf.Requirements]:
    """Rewrite a .conda file in its canonical form; return its binaries' requirements by file.

    Args:
        package: the engine's .conda file.
        directory: the engine's build directory.
        epoch: the modification time of all files in the package, in seconds since 1970.
        relinked: whether the engine set the search paths of the binaries. If not, they are a
            vendor's binaries, and this function keeps their build IDs.

    Raises:
        BuildFailed: a file contains ``directory`` outside the prefix placeholder, or a binary is
            truncated.
    """
    part = package.with_suffix(".part")
    payload, info = (f"{kind}-{package.stem}.tar.zst" for kind in ("pkg", "info"))
    digests: dict[str, tuple[str, int]] = {}
    requirements: dict[str, elf.Requirements] = {}
    with zipfile.ZipFile(package) as source, zipfile.ZipFile(part, "w") as target:
        metadata = list(_read_archive(source, info))
        placeholder = _find_placeholder(metadata)

        def rewrite_payload() -> Iterator[Member]:
            for member, original in _read_archive(source, payload):
                content = original.replace(placeholder, PLACEHOLDER)
                if member.name.endswith(".dist-info/RECORD"):
                    content = RECORD_HASH.sub(b",,", content)
                elif relinked and original.startswith(b"\x7fELF"):
                    content = _set_build_id(content)
                elif original and member.name.endswith(".pyc") and "/__pycache__/" in member.name:
                    content = _set_source_time(content, epoch)
                digests[_sha256(original)] = _sha256(content), len(content)
                requirements.update(_read_requirements([(member, content)]))
                yield member, content

        def rewrite_metadata() -> Iterator[Member]:
            # Runs after rewrite_payload, because paths.json contains the payload's digests.
            for member, original in metadata:
                content = original.replace(placeholder, PLACEHOLDER)
                yield member, _rewrite_json(member.name, content, digests, requirements, epoch)

        with target.open(_zip_entry("metadata.json", epoch), "w") as stream:
            stream.write(source.read("metadata.json"))
        for name, members in ((payload, rewrite_payload()), (info, rewrite_metadata())):
            with target.open(_zip_entry(name, epoch), "w") as stream:
                _write_archive(stream, _check_paths(members, directory, package.name), epoch)
    part.replace(package)
    return requirements


def read_requirements(package: Path) -> dict[str, elf.Requirements]:
    """Read the requirements of the binaries in a .conda file, by file.

    Raises:
        BuildFailed: a binary is truncated.
    """
    return _read_requirements(read_members(package))


def package_name(package: Path) -> str:
    """Return the package's name: the file's name without version and build string."""
    return package.name.rsplit("-", 2)[0]


def read_metadata(package: Path) -> dict[str, Any]:
    """Read the METADATA_FILES of a .conda file; return them by name, without ``info/``."""
    with zipfile.ZipFile(package) as source:
        return {
            member.name.removeprefix("info/"): json.loads(content)
            for member, content in _read_archive(source, f"info-{package.stem}.tar.zst")
            if member.name in METADATA_FILES
        }


def read_members(package: Path) -> Iterator[Member]:
    """Read the files in a .conda file: the payload, then the metadata."""
    with zipfile.ZipFile(package) as source:
        for kind in ("pkg", "info"):
            yield from _read_archive(source, f"{kind}-{package.stem}.tar.zst")


def _read_archive(package: zipfile.ZipFile, archive: str) -> Iterator[Member]:
    with (
        package.open(archive) as compressed,
        zstandard.ZstdDecompressor().stream_reader(compressed) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            yield member, content.read() if content else b""


def _find_placeholder(metadata: Iterable[Member]) -> bytes:
    """Find the prefix placeholder of a package; return PLACEHOLDER if no file contains one."""
    paths = next(content for member, content in metadata if member.name == "info/paths.json")
    entries = json.loads(paths)["paths"]
    recorded = {entry["prefix_placeholder"] for entry in entries if "prefix_placeholder" in entry}
    [placeholder] = recorded or {PLACEHOLDER.decode()}
    # Offsets in a binary must not change.
    assert len(placeholder) == len(PLACEHOLDER)
    return str(placeholder).encode()


def _set_build_id(content: bytes) -> bytes:
    """Set a binary's build ID to the SHA-1 of the binary without build ID."""
    digest = hashlib.sha1(BUILD_ID.sub(b"", content)).digest()
    return BUILD_ID.sub(lambda _: digest, content)


def _set_source_time(bytecode: bytes, epoch: int) -> bytes:
    """Set the modification time of the source in bytecode; do nothing if it contains a hash.

    https://peps.python.org/pep-0552/ defines the format: magic number, flags, time, size.
    """
    if any(bytecode[4:8]):
        return bytecode
    return bytecode[:8] + epoch.to_bytes(4, "little") + bytecode[12:]


def _read_requirements(members: Iterable[Member]) -> dict[str, elf.Requirements]:
    requirements = {}
    for member, content in members:
        if elf.is_x86_64(content):
            try:
                requirements[member.name] = elf.read_requirements(content)
            except elf.ElfError as error:
                raise BuildFailed(f"{member.name}: {error}") from error
    return requirements


def _rewrite_json(
    name: str,
    content: bytes,
    digests: Mapping[str, tuple[str, int]],
    requirements: Mapping[str, elf.Requirements],
    epoch: int,
) -> bytes:
    """Replace or remove the values that differ between builds in a file below info/.

    Args:
        digests: the new SHA-256 and size in bytes of each file of the payload, by its old SHA-256.
    """
    if name not in ("info/about.json", "info/index.json", "info/paths.json"):
        return content
    table = json.loads(content)
    match name:
        case "info/about.json":
            table["channels"] = [CHANNEL]
            # `extra` has addresses of sources, which do not change the package.
            table.pop("extra", None)
        case "info/index.json":
            other_specs = [spec for spec in table["depends"] if spec.split()[0] != "__glibc"]
            table["depends"] = sorted(other_specs + binaries.make_glibc_specs(requirements))
            # The time of the build, in milliseconds.
            table["timestamp"] = epoch * 1000
        case "info/paths.json":
            for entry in table["paths"]:
                # An entry of a link has the digest of the link's target. If another package
                # contains the target, keep the digest.
                if (rewritten := digests.get(entry.get("sha256"))) is None:
                    continue
                entry["sha256"], size = rewritten
                if entry["path_type"] == "hardlink":
                    entry["size_in_bytes"] = size
    return json.dumps(table, indent=2).encode()


def _check_paths(members: Iterable[Member], directory: Path, package: str) -> Iterator[Member]:
    """Yield the members; raise BuildFailed if a member contains the path of the build directory."""
    for member, content in members:
        if str(directory).encode() in content:
            raise BuildFailed(
                f"{package}: {member.name} contains the path of the build directory, {directory}",
                "remove it in the recipe's build.sh (-ffile-prefix-map, sed)",
            )
        yield member, content


def _zip_entry(name: str, epoch: int) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, time.gmtime(epoch)[:6])


def _write_archive(stream: IO[bytes], members: Iterable[Member], epoch: int) -> None:
    # With threads, the compressed bytes do not depend on the number of threads. Without threads,
    # they are different.
    compressor = zstandard.ZstdCompressor(COMPRESSION_LEVEL, threads=-1)
    with (
        compressor.stream_writer(stream, closefd=False) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for original, content in members:
            member = tarfile.TarInfo(original.name)
            member.type, member.linkname, member.size = (
                original.type,
                original.linkname,
                len(content),
            )
            # The other bits depend on the user's umask.
            member.mode = 0o755 if original.mode & 0o100 else 0o644
            member.mtime = epoch
            tar.addfile(member, io.BytesIO(content))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
