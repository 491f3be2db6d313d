"""Push an image's OCI archive to a registry, and attach documents to the image.

The protocol is OCI's distribution specification 1.1. ``docker push`` is not suitable: it compresses
the layers, which changes the image's digest.
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
# Seconds without data from the registry after which a request fails.
TIMEOUT = 60
# The media type of OCI's empty blob, whose content is the JSON object {}. The manifest of an
# attached document names this blob as the configuration.
EMPTY = "application/vnd.oci.empty.v1+json"


class Repository:
    """A repository in a registry that needs no password.

    Args:
        address: the repository's URL, for example https://registry.example.org/theano-fast.
    """

    def __init__(self, address: str) -> None:
        url = urllib.parse.urlsplit(address)
        self.address = f"{url.netloc}{url.path}".rstrip("/")
        self._root = f"{url.scheme}://{url.netloc}/v2{url.path.rstrip('/')}/"

    def push(self, archive: Path, tag: str) -> str:
        """Push the blobs of an OCI archive, then its manifest under ``tag``.

        Returns:
            The digest of the manifest.

        Raises:
            ImageFailed: the registry refused the image, or did not answer.
        """
        with tarfile.open(archive) as tar:

            def read(digest: str) -> IO[bytes]:
                stream = tar.extractfile("blobs/" + digest.replace(":", "/"))
                assert stream is not None
                return stream

            index = tar.extractfile("index.json")
            assert index is not None
            [descriptor] = json.load(index)["manifests"]
            content = read(descriptor["digest"]).read()
            manifest = json.loads(content)
            for blob in (manifest["config"], *manifest["layers"]):
                self._push_blob(blob, read(blob["digest"]))
        self._put_manifest(f"manifests/{tag}", content, MANIFEST)
        return str(descriptor["digest"])

    def attach(self, digest: str, content: bytes, media_type: str) -> None:
        """Push a document and attach it to an image.

        Args:
            digest: the digest of the image's manifest.
            content: the document.
            media_type: the document's media type.

        Raises:
            ImageFailed: the registry refused the document, or did not answer.
        """
        subject = self._make_descriptor(self._send("GET", f"manifests/{digest}")[1], MANIFEST)
        empty, blob = (
            self._make_descriptor(b"{}", EMPTY),
            self._make_descriptor(content, media_type),
        )
        self._push_blob(empty, b"{}")
        self._push_blob(blob, content)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": media_type}
        manifest |= {"config": empty, "layers": [blob], "subject": subject}
        text = _encode_json(manifest)
        entry = {**self._make_descriptor(text, MANIFEST), "artifactType": media_type}
        headers, _ = self._put_manifest(f"manifests/{entry['digest']}", text, MANIFEST)
        if "OCI-Subject" not in headers:
            # The registry does not implement version 1.1. Its clients find the documents of an
            # image in an index, whose tag is the image's digest with "-" instead of ":".
            path = f"manifests/{digest.replace(':', '-')}"
            previous = self._send("GET", path, accept=INDEX, absent=b"{}")[1]
            manifests = [row for row in json.loads(previous).get("manifests", []) if row != entry]
            index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*manifests, entry]}
            self._put_manifest(path, _encode_json(index), INDEX)

    @staticmethod
    def _make_descriptor(content: bytes, media_type: str) -> dict[str, Any]:
        """Make OCI's descriptor of a blob or manifest: its media type, digest and size."""
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def _push_blob(self, blob: Mapping[str, Any], content: bytes | IO[bytes]) -> None:
        """Push a blob, unless the registry has it.

        Args:
            blob: the blob's descriptor.
        """
        if "Docker-Content-Digest" in self._send("HEAD", f"blobs/{blob['digest']}", absent=b"")[0]:
            return
        headers, _ = self._send("POST", "blobs/uploads/", b"")
        url = urllib.parse.urljoin(self._root, headers["Location"])
        url += ("&" if "?" in url else "?") + f"digest={blob['digest']}"
        self._send("PUT", url, content, type="application/octet-stream", length=blob["size"])

    def _put_manifest(self, path: str, content: bytes, media_type: str) -> tuple[Message, bytes]:
        return self._send("PUT", path, content, type=media_type)

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | IO[bytes] | None = None,
        *,
        accept: str = MANIFEST,
        absent: bytes | None = None,
        **fields: object,
    ) -> tuple[Message, bytes]:
        """Send an HTTP request; return the headers and the body of the answer.

        Args:
            method: the HTTP method, such as ``PUT``.
            path: a path below the repository's URL, or a complete URL.
            content: the body of the request; None for no body.
            accept: the accepted media type of the answer.
            absent: the body to return for HTTP status 404; None to treat this status as an error.
            fields: values of headers whose names begin with "Content-", by the end of the name:
                ``type`` sets Content-Type.

        Raises:
            ImageFailed: the registry answered with an error, or did not answer.
        """
        headers = {"Accept": accept}
        headers |= {f"Content-{name.title()}": str(value) for name, value in fields.items()}
        url = urllib.parse.urljoin(self._root, path)
        request = urllib.request.Request(url, content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND and absent is not None:
                return Message(), absent
            text = error.read().decode("utf-8", "replace").strip() or error.reason
            raise self._make_error(f"{error.code}: {text}") from error
        except OSError as error:
            raise self._make_error(str(error)) from error

    def _make_error(self, reason: str) -> ImageFailed:
        return ImageFailed(
            f"{self.address}: {reason}",
            "if the registry needs a login: ./invoke image --save image.tar, skopeo login, and "
            f"skopeo copy --preserve-digests oci-archive:image.tar docker://{self.address}:TAG",
        )


def _encode_json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
