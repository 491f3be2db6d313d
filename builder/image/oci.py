"""Convert the archive of ``docker save`` to a reproducible OCI archive.

``docker load``, podman and Apptainer can read the archive. It follows the OCI image layout
specification 1.0. Like archives of Docker 25 and newer, it also contains Docker's own
``manifest.json``.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
# The fields of ``config`` in the OCI image specification. They control how a container runs.
EXECUTION_FIELDS = {"User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir"}
EXECUTION_FIELDS |= {"Labels", "StopSignal", "Healthcheck"}


def convert_archive(saved: Path, target: Path, reference: str, epoch: int) -> str:
    """Convert an archive of ``docker save`` with one image; return the digest of its manifest.

    Two builds of the same layers give the same digest, because the new archive omits Docker's
    build times and container names.

    Args:
        saved: the archive of ``docker save``.
        target: the OCI archive to write.
        reference: the image's name in the archive.
        epoch: the time of the image and of its history, in seconds since 1970.
    """
    with tarfile.open(saved) as tar, tarfile.open(target, "w") as out:
        # Add the directories, because Apptainer does not create missing parents of members.
        for directory in ("blobs", "blobs/sha256"):
            member = tarfile.TarInfo(directory)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            out.addfile(member)
        [image] = json.load(_open_member(tar, "manifest.json"))
        config = _add_blob(out, _reduce_config(_open_member(tar, image["Config"]), epoch), CONFIG)
        layers = [_add_blob(out, _open_member(tar, name), LAYER) for name in image["Layers"]]
        content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config}
        manifest = _add_blob(out, _encode_json({**content, "layers": layers}), MANIFEST)
        manifest["annotations"] = {
            # podman reads the image's name from the first annotation. containerd reads the second.
            "org.opencontainers.image.ref.name": reference,
            "io.containerd.image.name": f"docker.io/library/{reference}",
        }
        _add_member(out, "index.json", _encode_json({"schemaVersion": 2, "manifests": [manifest]}))
        _add_member(out, "oci-layout", _encode_json({"imageLayoutVersion": "1.0.0"}))
        docker_manifest = {
            "Config": _format_blob_path(config["digest"]),
            "RepoTags": [reference],
            "Layers": [_format_blob_path(layer["digest"]) for layer in layers],
        }
        _add_member(out, "manifest.json", _encode_json([docker_manifest]))
        return str(manifest["digest"])


def _reduce_config(stream: IO[bytes], epoch: int) -> IO[bytes]:
    """Reduce an image's configuration to the fields of OCI, with the time ``epoch``."""
    original = json.load(stream)
    time = datetime.fromtimestamp(epoch, timezone.utc).isoformat().replace("+00:00", "Z")
    fields = {key: original[key] for key in ("architecture", "os", "rootfs") if key in original}
    # Drop Docker's own fields. They contain the ID of the image before the last step, which differs
    # in each build.
    config = {
        key: value for key, value in original.get("config", {}).items() if key in EXECUTION_FIELDS
    }
    history = [{**step, "created": time} for step in original.get("history", [])]
    return _encode_json({**fields, "config": config, "created": time, "history": history})


def _open_member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = tar.extractfile(name)
    assert stream is not None
    return stream


def _encode_json(content: Any) -> IO[bytes]:
    return io.BytesIO(json.dumps(content, sort_keys=True).encode())


def _format_blob_path(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _add_blob(out: tarfile.TarFile, stream: IO[bytes], media_type: str) -> dict[str, Any]:
    """Add a blob under its digest, unless the archive contains it; return its descriptor."""
    digest = hashlib.sha256()
    while block := stream.read(1 << 20):
        digest.update(block)
    size = stream.tell()
    name = f"sha256:{digest.hexdigest()}"
    if _format_blob_path(name) not in out.getnames():
        _add_member(out, _format_blob_path(name), stream)
    return {"mediaType": media_type, "digest": name, "size": size}


def _add_member(out: tarfile.TarFile, name: str, stream: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    out.addfile(member, stream)
