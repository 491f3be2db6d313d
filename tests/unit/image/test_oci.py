"""Test the conversion of Docker's archives to reproducible OCI archives."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from builder.image import oci

FIRST, SECOND = b"first layer", b"second layer"
NAME, EPOCH = "theano-fast:openblas", 1595894400


def compute_sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pack(file: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(file, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file


def unpack(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        members = ((member.name, tar.extractfile(member)) for member in tar)
        return {name: content.read() for name, content in members if content}


def save_image(tmp_path: Path, *, built: str = "2026", blobs: str = "") -> Path:
    """Write an image archive like ``docker save``.

    Args:
        built: the build time, which the configuration contains.
        blobs: the directory of the image's files: the archive's root in Docker 20.10, and
            ``blobs/sha256/`` in Docker 25.
    """
    config = {
        "os": "linux",
        "created": built,
        "container": f"made in {built}",
        "config": {"Env": ["PATH=/bin"], "Image": f"sha256:{built}"},
        "history": [{"created": built, "created_by": "ADD"}],
        "rootfs": {"type": "layers", "diff_ids": ["sha256:0"]},
    }
    layers = [f"{blobs}{number}/layer.tar" for number in (1, 2, 3)]
    manifest = [{"Config": f"{blobs}c.json", "RepoTags": None, "Layers": layers}]
    members = {f"{blobs}c.json": json.dumps(config).encode()}
    members |= dict(zip(layers, (FIRST, SECOND, FIRST), strict=True))
    members["manifest.json"] = json.dumps(manifest).encode()
    return pack(tmp_path / f"saved-{built}.tar", members)


def test_each_directory_comes_before_its_contents(tmp_path: Path) -> None:
    oci.convert_archive(save_image(tmp_path), tmp_path / "oci.tar", NAME, EPOCH)
    with tarfile.open(tmp_path / "oci.tar") as tar:
        directories = {"."}
        for member in tar:
            assert str(Path(member.name).parent) in directories
            directories.add(member.name)


def test_the_path_of_every_blob_is_its_digest(tmp_path: Path) -> None:
    digest = oci.convert_archive(save_image(tmp_path), tmp_path / "oci.tar", NAME, EPOCH)
    members = unpack(tmp_path / "oci.tar")
    [descriptor] = json.loads(members["index.json"])["manifests"]
    assert descriptor["digest"] == digest
    assert descriptor["annotations"]["org.opencontainers.image.ref.name"] == NAME
    manifest = json.loads(members[f"blobs/sha256/{digest.removeprefix('sha256:')}"])
    layers = [compute_sha256(content) for content in (FIRST, SECOND, FIRST)]
    assert [layer["digest"] for layer in manifest["layers"]] == [
        f"sha256:{item}" for item in layers
    ]
    assert [layer["size"] for layer in manifest["layers"]] == [len(FIRST), len(SECOND), len(FIRST)]
    for name, content in members.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{compute_sha256(content)}"
    [loaded] = json.loads(members["manifest.json"])
    assert loaded["RepoTags"] == [NAME]
    assert [members[name] for name in loaded["Layers"]] == [FIRST, SECOND, FIRST]
    config = json.loads(members[loaded["Config"]])
    assert config["config"] == {"Env": ["PATH=/bin"]}
    assert config["created"] == config["history"][0]["created"] == "2020-07-28T00:00:00Z"


def test_the_digest_does_not_depend_on_the_build_time(tmp_path: Path) -> None:
    for year in ("2026", "2027"):
        oci.convert_archive(save_image(tmp_path, built=year), tmp_path / f"{year}.tar", NAME, EPOCH)
    assert (tmp_path / "2026.tar").read_bytes() == (tmp_path / "2027.tar").read_bytes()


def test_archives_of_two_docker_versions_have_the_same_digest(tmp_path: Path) -> None:
    digests = {
        oci.convert_archive(save_image(tmp_path, blobs=blobs), tmp_path / "oci.tar", NAME, EPOCH)
        for blobs in ("", "blobs/sha256/")
    }
    assert len(digests) == 1
