"""OCI image archives: tar files that docker load, podman and apptainer read.

OCI image layout specification 1.0; the file ``manifest.json`` is Docker's own and lies beside it,
as Docker has done it since version 25.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import IO, Any

LAYOUT = "oci-layout"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def convert(saved: Path, target: Path) -> None:
    """Make an OCI archive of what ``docker save`` wrote for one image.

    A Docker from version 25 on has done it already; this may go with those before.
    """
    with tarfile.open(saved) as tar:
        if LAYOUT in tar.getnames():
            shutil.copyfile(saved, target)
            return
        [image] = json.load(_open(tar, "manifest.json"))
        with tarfile.open(target, "w") as out:
            config = _blob(out, _open(tar, image["Config"]), CONFIG)
            layers = [_blob(out, _open(tar, name), LAYER) for name in image["Layers"]]
            content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config}
            manifest = _blob(out, _json({**content, "layers": layers}), MANIFEST)
            [reference] = image["RepoTags"]
            manifest["annotations"] = {
                # What podman takes for the name, and what containerd does.
                "org.opencontainers.image.ref.name": reference,
                "io.containerd.image.name": f"docker.io/library/{reference}",
            }
            _add(out, "index.json", _json({"schemaVersion": 2, "manifests": [manifest]}))
            _add(out, LAYOUT, _json({"imageLayoutVersion": "1.0.0"}))
            places = {
                "Config": _place(config["digest"]),
                "Layers": [_place(layer["digest"]) for layer in layers],
            }
            _add(out, "manifest.json", _json([{**image, **places}]))


def _open(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = tar.extractfile(name)
    assert stream is not None
    return stream


def _json(content: Any) -> IO[bytes]:
    return io.BytesIO(json.dumps(content, sort_keys=True).encode())


def _place(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _blob(out: tarfile.TarFile, stream: IO[bytes], media_type: str) -> dict[str, Any]:
    """Add a blob under its digest, unless it is there; returns its descriptor."""
    digest = hashlib.sha256()
    while block := stream.read(1 << 20):
        digest.update(block)
    size = stream.tell()
    name = f"sha256:{digest.hexdigest()}"
    if _place(name) not in out.getnames():
        _add(out, _place(name), stream)
    return {"mediaType": media_type, "digest": name, "size": size}


def _add(out: tarfile.TarFile, name: str, stream: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    out.addfile(member, stream)
