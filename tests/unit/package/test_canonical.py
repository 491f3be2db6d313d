"""Test that canonical packages have the same bytes, digests and requirements."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from elf_file import make_library

from builder.common.errors import BuildFailed
from builder.package import canonical

EPOCH = 1595894400
# The header of an ELF note with a build ID of 20 bytes (NT_GNU_BUILD_ID).
NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
BYTECODE = "lib/__pycache__/x.cpython-311.pyc"


def pack(files: dict[str, bytes], mode: int) -> bytes:
    """Return a tar archive of the files with these permissions, compressed with Zstandard."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime, member.uname = len(content), mode, 7, "me"
            archive.addfile(member, io.BytesIO(content))
    return zstandard.compress(buffer.getvalue())


def write_engine_package(
    directory: Path, *, depends: list[str], umask: int = 0, **more: bytes
) -> Path:
    """Write a package as the engine does when it builds in ``directory``; return its file.

    Args:
        depends: the dependencies in index.json.
        umask: the engine's umask, which clears permissions of the package's files.
        more: additional files, by path in the package.
    """
    prefix = f"{directory}/host_env{'_placehold' * 25}"[:255].encode()
    record = b"../../../bin/tool,sha256=%b,9\r\nx.so,sha256=%b,9\r\nRECORD,,\r\n"
    digest = directory.name.encode()
    files = {
        "bin/tool": b"#!" + prefix + b"/bin/python\n",
        "lib/x.so": b"\x7fELF" + NOTE + hashlib.sha1(prefix).digest() + prefix + b"\0code",
        "lib/x.dist-info/RECORD": record % (digest, digest),
        BYTECODE: importlib.util.MAGIC_NUMBER + bytes(4) + digest[:1] * 4 + b"sizecode",
        **more,
    }
    entries: list[dict[str, Any]] = [
        {
            "_path": name,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(content).hexdigest(),
            "size_in_bytes": len(content),
            **({"prefix_placeholder": prefix.decode()} if prefix in content else {}),
        }
        for name, content in files.items()
    ]
    info = {
        "info/about.json": {"channels": [f"file://{directory}"], "extra": {"upstream": {}}},
        "info/index.json": {"depends": depends},
        "info/paths.json": {"paths": entries},
    }
    directory.mkdir(parents=True)
    package = directory / "x-1.0-h0_0.conda"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("metadata.json", "{}")
        info_files = {name: json.dumps(table).encode() for name, table in info.items()}
        archive.writestr("info-x-1.0-h0_0.tar.zst", pack(info_files, 0o644 & ~umask))
        archive.writestr("pkg-x-1.0-h0_0.tar.zst", pack(files, 0o755 & ~umask))
    return package


def canonicalize(package: Path, **options: bool) -> dict[str, bytes]:
    """Canonicalize a package; return the content of its files by path."""
    canonical.canonicalize(package, package.parent, EPOCH, **options)
    return {member.name: content for member, content in canonical.read_members(package)}


def test_builds_in_different_directories_have_the_same_bytes(tmp_path: Path) -> None:
    first = write_engine_package(tmp_path / "a", depends=["libgcc", "zlib"])
    second = write_engine_package(
        tmp_path / "b" / "directory", depends=["zlib", "libgcc"], umask=0o77
    )
    canonicalize(first)
    canonicalize(second)
    assert first.read_bytes() == second.read_bytes()


def test_paths_json_has_the_digests_of_the_canonical_files(tmp_path: Path) -> None:
    files = canonicalize(write_engine_package(tmp_path / "a", depends=[]))
    paths = json.loads(files["info/paths.json"])["paths"]
    assert {entry["_path"]: (entry["sha256"], entry["size_in_bytes"]) for entry in paths} == {
        name: (hashlib.sha256(content).hexdigest(), len(content))
        for name, content in files.items()
        if not name.startswith("info/")
    }
    placeholders = {entry.get("prefix_placeholder") for entry in paths} - {None}
    assert placeholders == {canonical.PLACEHOLDER.decode()}
    assert files["bin/tool"] == b"#!" + canonical.PLACEHOLDER + b"/bin/python\n"
    assert files["lib/x.dist-info/RECORD"] == (b"../../../bin/tool,,\r\nx.so,,\r\nRECORD,,\r\n")


def test_bytecode_contains_the_time_of_the_packages_files(tmp_path: Path) -> None:
    with_hash = importlib.util.MAGIC_NUMBER + b"\3\0\0\0hash of source"
    package = write_engine_package(
        tmp_path / "a", depends=[], **{"lib/__pycache__/hash.pyc": with_hash}
    )
    files = canonicalize(package)
    time = EPOCH.to_bytes(4, "little")
    assert files[BYTECODE] == importlib.util.MAGIC_NUMBER + bytes(4) + time + b"sizecode"
    assert files["lib/__pycache__/hash.pyc"] == with_hash


def test_a_binary_that_was_not_relinked_keeps_its_build_id(tmp_path: Path) -> None:
    binary = b"\x7fELF" + NOTE + b"the vendor's own id."
    package = write_engine_package(tmp_path / "a", depends=[], **{"lib/vendor.so": binary})
    assert canonicalize(package, relinked=False)["lib/vendor.so"] == binary
    assert canonicalize(package)["lib/vendor.so"] != binary


def test_the_glibc_dependency_is_computed_from_the_binaries(tmp_path: Path) -> None:
    depends = ["zlib", "__glibc >=2.36,<3.0.a0", "libgcc"]
    binary = make_library(versions={"libc.so.6": {"GLIBC_2.14": ["memcpy"], "GLIBC_2.4": ["f"]}})
    contents = {}
    for name, more in (("with", {"lib/y.so": binary}), ("without", {})):
        files = canonicalize(write_engine_package(tmp_path / name, depends=depends, **more))
        contents[name] = json.loads(files["info/index.json"])["depends"]
    assert contents == {
        "with": ["__glibc >=2.14,<3.0.a0", "libgcc", "zlib"],
        "without": ["libgcc", "zlib"],
    }


def test_the_requirements_of_a_packages_binaries_are_read(tmp_path: Path) -> None:
    binary = make_library(needed=["libz.so.1"])
    package = write_engine_package(tmp_path / "a", depends=["zlib"], **{"lib/y.so": binary})
    required = canonical.canonicalize(package, package.parent, EPOCH)
    assert required["lib/y.so"].libraries == ("libz.so.1",)
    assert canonical.read_requirements(package) == required
    assert canonical.read_metadata(package)["index.json"]["depends"] == ["zlib"]


def test_a_truncated_binary_is_rejected(tmp_path: Path) -> None:
    package = write_engine_package(tmp_path / "a", depends=[], **{"lib/y.so": make_library()[:-1]})
    with pytest.raises(BuildFailed, match=r"lib/y\.so: it is truncated"):
        canonicalize(package)


def test_a_file_with_the_build_directorys_path_is_rejected(tmp_path: Path) -> None:
    leak = f"{tmp_path}/a/build/x.c".encode()
    package = write_engine_package(tmp_path / "a", depends=[], **{"lib/leak.txt": leak})
    with pytest.raises(BuildFailed, match=r"lib/leak.txt contains the path of the build directory"):
        canonicalize(package)
    assert [file.name for file in package.parent.iterdir() if file.suffix == ".conda"]
