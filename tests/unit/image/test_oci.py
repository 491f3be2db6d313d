from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from builder.image import oci

FIRST, SECOND = b"first layer", b"second layer"
NAME, EPOCH = "theano-fast:openblas", 1595894400


def sha256(content: bytes) -> str:
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


def saved(tmp_path: Path, *, built: str = "2026", blobs: str = "") -> Path:
    """Write an archive of Docker 20.10; with ``blobs`` as prefix of its paths, of Docker 25."""
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


def test_each_directory_comes_before_what_is_in_it(tmp_path: Path) -> None:
    oci.convert_archive(saved(tmp_path), tmp_path / "oci.tar", NAME, EPOCH)
    with tarfile.open(tmp_path / "oci.tar") as tar:
        seen = {"."}
        for member in tar:
            assert str(Path(member.name).parent) in seen
            seen.add(member.name)


def test_every_blob_lies_where_its_digest_says(tmp_path: Path) -> None:
    digest = oci.convert_archive(saved(tmp_path), tmp_path / "oci.tar", NAME, EPOCH)
    members = unpack(tmp_path / "oci.tar")
    [descriptor] = json.loads(members["index.json"])["manifests"]
    assert descriptor["digest"] == digest
    assert descriptor["annotations"]["org.opencontainers.image.ref.name"] == NAME
    manifest = json.loads(members[f"blobs/sha256/{digest.removeprefix('sha256:')}"])
    layers = [sha256(content) for content in (FIRST, SECOND, FIRST)]
    assert [layer["digest"] for layer in manifest["layers"]] == [f"sha256:{it}" for it in layers]
    assert [layer["size"] for layer in manifest["layers"]] == [len(FIRST), len(SECOND), len(FIRST)]
    for name, content in members.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{sha256(content)}"
    [loaded] = json.loads(members["manifest.json"])
    assert loaded["RepoTags"] == [NAME]
    assert [members[name] for name in loaded["Layers"]] == [FIRST, SECOND, FIRST]
    config = json.loads(members[loaded["Config"]])
    assert config["config"] == {"Env": ["PATH=/bin"]}
    assert config["created"] == config["history"][0]["created"] == "2020-07-28T00:00:00Z"


def test_the_time_of_the_build_changes_nothing(tmp_path: Path) -> None:
    for year in ("2026", "2027"):
        oci.convert_archive(saved(tmp_path, built=year), tmp_path / f"{year}.tar", NAME, EPOCH)
    assert (tmp_path / "2026.tar").read_bytes() == (tmp_path / "2027.tar").read_bytes()


def test_what_a_later_docker_saves_gives_the_same(tmp_path: Path) -> None:
    digests = {
        oci.convert_archive(saved(tmp_path, blobs=blobs), tmp_path / "oci.tar", NAME, EPOCH)
        for blobs in ("", "blobs/sha256/")
    }
    assert len(digests) == 1
