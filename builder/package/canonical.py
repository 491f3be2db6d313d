"""The canonical form of a package: the same bytes, wherever and by whomever it was built.

The engine records the directory that it builds in, as the prefix placeholder and as the
channel's address, and it lists dependencies in the order of a hash table. Linkers digest the
placeholder into build IDs, pip into hashes. None of this says anything about
the package: here it gives way to what every build has in common. And of glibc it lists what that
of the build's time was, or the compiler's: here it asks for what its binaries ask for.
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

# As long as the engine's, which it pads to the longest prefix that conda can put in its place.
PLACEHOLDER = ("/theano-fast" + "_placehold" * 25)[:255].encode()
CHANNEL = "theano-fast"
COMPRESSION_LEVEL = 15

# The note in which a linker leaves the SHA-1 of what it wrote (elf.h: Elf64_Nhdr).
BUILD_ID = re.compile(rb"(?<=\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0).{20}", re.DOTALL)
# The hashes in pip's RECORD, which may be empty. They are of files for the prefix of the build,
# before the engine relinked them; paths.json has those of the files in the package.
HASH = re.compile(rb",sha256=[^,]+,\d+(?=\r?$)", re.MULTILINE)

Member = tuple[tarfile.TarInfo, bytes]
# The files in a package that metadata reads.
DESCRIPTIONS = tuple(f"info/{name}.json" for name in ("index", "paths", "about", "run_exports"))


def write(
    package: Path, directory: Path, epoch: int, *, relinked: bool = True
) -> dict[str, elf.Demands]:
    """Rewrite a .conda file in its canonical form; what its binaries demand, by file.

    Args:
        package: the file, as the engine made it.
        directory: where the engine built it.
        epoch: the time of all files in it, in seconds since 1970.
        relinked: whether the engine set the search paths of its binaries. Others are a
            vendor's, and stay as they are.

    Raises:
        BuildFailed: a file in it names ``directory`` other than as the prefix, or a binary is cut
            short.
    """
    part = package.with_suffix(".part")
    payload, info = (f"{kind}-{package.stem}.tar.zst" for kind in ("pkg", "info"))
    digests: dict[str, tuple[str, int]] = {}
    demands: dict[str, elf.Demands] = {}
    with zipfile.ZipFile(package) as given, zipfile.ZipFile(part, "w") as made:
        described = list(_members(given, info))
        placeholder = _placeholder(described)

        def files() -> Iterator[Member]:
            for member, content in _members(given, payload):
                found = content.replace(placeholder, PLACEHOLDER)
                if member.name.endswith(".dist-info/RECORD"):
                    found = HASH.sub(b",,", found)
                elif relinked and content.startswith(b"\x7fELF"):
                    found = _with_build_id(found)
                digests[_sha256(content)] = _sha256(found), len(found)
                demands.update(_demands([(member, found)]))
                yield member, found

        def description() -> Iterator[Member]:
            for member, content in described:
                found = content.replace(placeholder, PLACEHOLDER)
                yield member, _description(member.name, found, digests, demands, epoch)

        with made.open(_entry("metadata.json", epoch), "w") as stream:
            stream.write(given.read("metadata.json"))
        for name, contents in ((payload, files()), (info, description())):
            with made.open(_entry(name, epoch), "w") as stream:
                _archive(stream, _clean(contents, directory, package.name), epoch)
    part.replace(package)
    return demands


def demands(package: Path) -> dict[str, elf.Demands]:
    """What the binaries in a .conda file demand, by file.

    Raises:
        BuildFailed: one is cut short.
    """
    return _demands(members(package))


def name(package: Path) -> str:
    """A package's name: its file's, without version and build string."""
    return package.name.rsplit("-", 2)[0]


def metadata(package: Path) -> dict[str, Any]:
    """What the JSON files that describe a .conda file's package say, by name."""
    with zipfile.ZipFile(package) as given:
        return {
            member.name.removeprefix("info/"): json.loads(content)
            for member, content in _members(given, f"info-{package.stem}.tar.zst")
            if member.name in DESCRIPTIONS
        }


def members(package: Path) -> Iterator[Member]:
    """The files in a .conda file, with their content: its payload, then what describes it."""
    with zipfile.ZipFile(package) as given:
        for kind in ("pkg", "info"):
            yield from _members(given, f"{kind}-{package.stem}.tar.zst")


def _members(package: zipfile.ZipFile, archive: str) -> Iterator[Member]:
    with (
        package.open(archive) as compressed,
        zstandard.ZstdDecompressor().stream_reader(compressed) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            yield member, content.read() if content else b""


def _placeholder(description: Iterable[Member]) -> bytes:
    """What stands for the prefix in a package's files; the canonical one if no file holds it."""
    paths = next(content for member, content in description if member.name == "info/paths.json")
    entries = json.loads(paths)["paths"]
    held = {entry["prefix_placeholder"] for entry in entries if "prefix_placeholder" in entry}
    [placeholder] = held or {PLACEHOLDER.decode()}
    # A binary's contents must not move.
    assert len(placeholder) == len(PLACEHOLDER)
    return str(placeholder).encode()


def _with_build_id(content: bytes) -> bytes:
    """A binary whose build ID is the SHA-1 of all the rest of it."""
    digest = hashlib.sha1(BUILD_ID.sub(b"", content)).digest()
    return BUILD_ID.sub(lambda _: digest, content)


def _demands(members: Iterable[Member]) -> dict[str, elf.Demands]:
    found = {}
    for member, content in members:
        if elf.is_x86_64(content):
            try:
                found[member.name] = elf.demands(content)
            except elf.CutShort as error:
                raise BuildFailed(f"{member.name} is cut short: {error}") from error
    return found


def _description(
    name: str,
    content: bytes,
    digests: Mapping[str, tuple[str, int]],
    demands: Mapping[str, elf.Demands],
    epoch: int,
) -> bytes:
    """One of the files below info/, without what differs between builds."""
    if name not in ("info/about.json", "info/index.json", "info/paths.json"):
        return content
    table = json.loads(content)
    match name:
        case "info/about.json":
            table["channels"] = [CHANNEL]
            # Where sources may be had is no input of a package.
            table.pop("extra", None)
        case "info/index.json":
            others = [spec for spec in table["depends"] if spec.split()[0] != "__glibc"]
            table["depends"] = sorted(others + binaries.requirement(demands))
            # When it was built, in milliseconds.
            table["timestamp"] = epoch * 1000
        case "info/paths.json":
            for entry in table["paths"]:
                # A link has the digest of its target, which may be in another package.
                if (found := digests.get(entry.get("sha256"))) is None:
                    continue
                entry["sha256"] = found[0]
                if entry["path_type"] == "hardlink":
                    entry["size_in_bytes"] = found[1]
    return json.dumps(table, indent=2).encode()


def _clean(members: Iterable[Member], directory: Path, package: str) -> Iterator[Member]:
    for member, content in members:
        if str(directory).encode() in content:
            raise BuildFailed(
                f"{package}: {member.name} names the directory it was built in, {directory}",
                "keep it out of there in the recipe's build.sh (-ffile-prefix-map, sed)",
            )
        yield member, content


def _entry(name: str, epoch: int) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, time.gmtime(epoch)[:6])


def _archive(stream: IO[bytes], members: Iterable[Member], epoch: int) -> None:
    # With threads the bytes are the same for any number of them, but not those without.
    compressor = zstandard.ZstdCompressor(COMPRESSION_LEVEL, threads=-1)
    with (
        compressor.stream_writer(stream, closefd=False) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for given, content in members:
            member = tarfile.TarInfo(given.name)
            member.type, member.linkname, member.size = given.type, given.linkname, len(content)
            # A user's umask decides on the other bits.
            member.mode = 0o755 if given.mode & 0o100 else 0o644
            member.mtime = epoch
            tar.addfile(member, io.BytesIO(content))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
