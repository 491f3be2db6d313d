"""An image's archive in a registry, and documents of it: OCI's distribution specification 1.1.

Docker's own push compresses anew, and so changes the digest.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from builder.common.errors import ImageFailed
from builder.image.oci import MANIFEST

INDEX = "application/vnd.oci.image.index.v1+json"
# Seconds of silence after which a registry is taken to be gone.
SILENCE = 60
EMPTY = "application/vnd.oci.empty.v1+json"


class Repository:
    """A repository of a registry, which asks for no password.

    Args:
        address: its URL, as https://registry.example.org/theano-fast.
    """

    def __init__(self, address: str) -> None:
        url = urllib.parse.urlsplit(address)
        self.address = f"{url.netloc}{url.path}".rstrip("/")
        self._root = f"{url.scheme}://{url.netloc}/v2{url.path.rstrip('/')}/"

    def push(self, archive: Path, tag: str) -> str:
        """Push the one image of an OCI archive, its tag last; the digest of its manifest.

        Raises:
            ImageFailed: the registry refused, or did not answer.
        """
        with tarfile.open(archive) as tar:

            def read(digest: str) -> IO[bytes]:
                stream = tar.extractfile("blobs/" + digest.replace(":", "/"))
                assert stream is not None
                return stream

            index = tar.extractfile("index.json")
            assert index is not None
            [found] = json.load(index)["manifests"]
            content = read(found["digest"]).read()
            manifest = json.loads(content)
            for blob in (manifest["config"], *manifest["layers"]):
                self._push_blob(blob, read(blob["digest"]))
        self._put(f"manifests/{tag}", content, MANIFEST)
        return str(found["digest"])

    def attach(self, digest: str, content: bytes, media_type: str) -> None:
        """Push a document of an image: clients find it as what refers to the image's digest.

        Raises:
            ImageFailed: the registry refused, or did not answer.
        """
        subject = self._describe(self._ask("GET", f"manifests/{digest}")[1], MANIFEST)
        empty, blob = self._describe(b"{}", EMPTY), self._describe(content, media_type)
        self._push_blob(empty, b"{}")
        self._push_blob(blob, content)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": media_type}
        manifest |= {"config": empty, "layers": [blob], "subject": subject}
        text = _json(manifest)
        entry = {**self._describe(text, MANIFEST), "artifactType": media_type}
        headers, _ = self._put(f"manifests/{entry['digest']}", text, MANIFEST)
        if "OCI-Subject" not in headers:
            # A registry of before 1.1: clients look into an index with this tag.
            place = f"manifests/{digest.replace(':', '-')}"
            known = self._ask("GET", place, accept=INDEX, absent=b"{}")[1]
            others = [one for one in json.loads(known).get("manifests", []) if one != entry]
            index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*others, entry]}
            self._put(place, _json(index), INDEX)

    @staticmethod
    def _describe(content: bytes, media_type: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def _push_blob(self, blob: Mapping[str, Any], content: bytes | IO[bytes]) -> None:
        """Push a blob, unless it is there."""
        if "Docker-Content-Digest" in self._ask("HEAD", f"blobs/{blob['digest']}", absent=b"")[0]:
            return
        headers, _ = self._ask("POST", "blobs/uploads/", b"")
        place = urllib.parse.urljoin(self._root, headers["Location"])
        place += ("&" if "?" in place else "?") + f"digest={blob['digest']}"
        self._ask("PUT", place, content, type="application/octet-stream", length=blob["size"])

    def _put(self, place: str, content: bytes, media_type: str) -> tuple[Message, bytes]:
        return self._ask("PUT", place, content, type=media_type)

    def _ask(
        self,
        method: str,
        place: str,
        content: bytes | IO[bytes] | None = None,
        *,
        accept: str = MANIFEST,
        absent: bytes | None = None,
        **fields: object,
    ) -> tuple[Message, bytes]:
        """The headers and the body of an answer.

        Args:
            absent: the body where there is no such thing; without it that is an error.
            fields: of what is sent, its Content-Type and the like.
        """
        headers = {"Accept": accept}
        headers |= {f"Content-{name.title()}": str(value) for name, value in fields.items()}
        url = urllib.parse.urljoin(self._root, place)
        request = urllib.request.Request(url, content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SILENCE) as answer:
                return answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND and absent is not None:
                return Message(), absent
            said = error.read().decode("utf-8", "replace").strip() or error.reason
            raise self._failed(f"{error.code}: {said}") from error
        except OSError as error:
            raise self._failed(str(error)) from error

    def _failed(self, reason: str) -> ImageFailed:
        return ImageFailed(
            f"{self.address}: {reason}",
            "where it asks for a login: ./invoke image --save image.tar, skopeo login, and "
            f"skopeo copy --preserve-digests oci-archive:image.tar docker://{self.address}:TAG",
        )


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
