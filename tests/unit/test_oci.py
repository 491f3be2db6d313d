from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from builder import oci

CONFIG, FIRST, SECOND = b'{"os": "linux"}', b"first layer", b"second layer"


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
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def saved(tmp_path: Path) -> Path:
    """What Docker 20.10 saves."""
    manifest = [
        {
            "Config": "c.json",
            "RepoTags": ["theano-fast:openblas"],
            "Layers": ["1/layer.tar", "2/layer.tar", "3/layer.tar"],
        }
    ]
    members = {"c.json": CONFIG, "1/layer.tar": FIRST, "2/layer.tar": SECOND}
    members |= {"3/layer.tar": FIRST, "manifest.json": json.dumps(manifest).encode()}
    return pack(tmp_path / "saved.tar", members)


def test_every_blob_lies_where_its_digest_says(tmp_path: Path) -> None:
    oci.convert(saved(tmp_path), tmp_path / "oci.tar")
    members = unpack(tmp_path / "oci.tar")
    [descriptor] = json.loads(members["index.json"])["manifests"]
    assert descriptor["annotations"]["org.opencontainers.image.ref.name"] == "theano-fast:openblas"
    manifest = json.loads(members[f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"])
    assert manifest["config"]["digest"] == f"sha256:{sha256(CONFIG)}"
    layers = [sha256(content) for content in (FIRST, SECOND, FIRST)]
    assert [layer["digest"] for layer in manifest["layers"]] == [f"sha256:{it}" for it in layers]
    assert [layer["size"] for layer in manifest["layers"]] == [len(FIRST), len(SECOND), len(FIRST)]
    for name, content in members.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{sha256(content)}"
    [loaded] = json.loads(members["manifest.json"])
    assert [members[name] for name in loaded["Layers"]] == [FIRST, SECOND, FIRST]
    assert members[loaded["Config"]] == CONFIG


def test_the_same_image_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.tar", "b.tar"):
        oci.convert(saved(tmp_path), tmp_path / name)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_what_a_later_docker_saves_is_kept(tmp_path: Path) -> None:
    file = pack(tmp_path / "saved.tar", {"oci-layout": b"{}", "index.json": b"{}"})
    oci.convert(file, tmp_path / "oci.tar")
    assert (tmp_path / "oci.tar").read_bytes() == file.read_bytes()
