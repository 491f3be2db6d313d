"""Push images to a registry: the tests start Debian's docker-registry."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import find_free_port, require

from builder.common import paths
from builder.common.errors import ImageFailed
from builder.image import oci, registry

# The media type of a bill of materials.
BILL = "application/vnd.cyclonedx+json"
# The output of `htpasswd -nB` for the password "secret".
USER = "me:$2y$05$/WsWprlT3j018fySpb4yE.nkbS8vaT4jqcWImrMi2xU3BeI8qz7ie"


@contextmanager
def serve_registry(
    directory: Path, *, readonly: bool = False, login: bool = False
) -> Iterator[str]:
    """Start a registry that stores its files in ``directory``; yield the URL of a repository.

    A ``readonly`` registry refuses to store images. With ``login``, it requires USER.
    """
    require("docker-registry")
    port = find_free_port()
    storage = {"filesystem": {"rootdirectory": str(directory / "registry")}}
    storage["maintenance"] = {"readonly": {"enabled": readonly}}  # type: ignore[dict-item]
    # Write the YAML file as JSON, which is valid YAML.
    settings = {"version": 0.1, "storage": storage, "http": {"addr": f"127.0.0.1:{port}"}}
    if login:
        (directory / "users").write_text(USER)
        settings["auth"] = {"htpasswd": {"realm": "tests", "path": str(directory / "users")}}
    (directory / "settings.yml").write_text(json.dumps(settings))
    with (directory / "log").open("wb") as log:
        command = ["docker-registry", "serve", directory / "settings.yml"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(100):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (directory / "log").read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/theano/fast"
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture
def archive(tmp_path: Path) -> tuple[Path, str]:
    """Write an OCI archive of an image with two layers; return the file and the image's digest."""
    manifest = [{"Config": "config.json", "RepoTags": None, "Layers": ["1.tar", "2.tar"]}]
    members = {"config.json": {"os": "linux", "rootfs": {}}, "manifest.json": manifest}
    members |= {"1.tar": "first", "2.tar": "second"}
    with tarfile.open(tmp_path / "saved.tar", "w") as tar:
        for name, content in members.items():
            text = json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    file = tmp_path / "image.tar"
    return file, oci.convert_archive(tmp_path / "saved.tar", file, "theano-fast:openblas", 0)


def get_json(url: str, path: str) -> Any:
    """Download JSON from a path of a repository's API, such as ``manifests/openblas``."""
    api = url.replace("/theano/", "/v2/theano/")
    types = {"Accept": f"{oci.MANIFEST}, {registry.INDEX}"}
    with urllib.request.urlopen(urllib.request.Request(f"{api}/{path}", None, types)) as answer:
        return json.load(answer)


def test_an_image_is_pushed_with_its_bills_of_materials(
    tmp_path: Path, archive: tuple[Path, str]
) -> None:
    file, digest = archive
    with serve_registry(tmp_path) as url:
        repository = registry.Repository(url)
        # Repeated pushes change nothing. The first and the third document are equal.
        for text in (b'{"bill": 1}', b'{"bill": 2}', b'{"bill": 1}'):
            assert repository.push(file, "openblas") == digest
            repository.attach(digest, text, BILL)
        manifest = get_json(url, f"manifests/{digest}")
        assert get_json(url, "manifests/openblas") == manifest
        assert [get_json(url, f"blobs/{layer['digest']}") for layer in manifest["layers"]] == [
            "first",
            "second",
        ]
        manifests = get_json(url, f"manifests/{digest.replace(':', '-')}")["manifests"]
        assert [entry["artifactType"] for entry in manifests] == [BILL] * 2
        bills = []
        for entry in manifests:
            attached = get_json(url, f"manifests/{entry['digest']}")
            assert attached["subject"]["digest"] == digest
            bills.append(get_json(url, f"blobs/{attached['layers'][0]['digest']}"))
        assert bills == [{"bill": 2}, {"bill": 1}]


def test_a_registry_that_refuses_is_reported(tmp_path: Path, archive: tuple[Path, str]) -> None:
    error = pytest.raises(ImageFailed, match=r"^127\.0\.0\.1:\d+/theano/fast: 405: ")
    with serve_registry(tmp_path, readonly=True) as url, error:
        registry.Repository(url).push(archive[0], "openblas")
    # Now the registry has ended.
    with pytest.raises(ImageFailed, match="refused"):
        registry.Repository(url).push(archive[0], "openblas")


def run_login(address: str, password: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of docs/images.md that push an image to a registry with a login.

    Omit the command that saves the image.
    """
    page = (paths.ROOT / "docs" / "images.md").read_text(encoding="utf-8")
    lines = page.partition("./invoke image --stack=openblas --save image.tar\n")[2]
    script = lines.partition("```")[0].replace("registry.example.org", address)
    assert script.count(address) == 2
    # Without a terminal, skopeo cannot ask for the user and the password.
    login = f"skopeo login --username=me --password-stdin <<< {password}"
    conf = directory / ".config" / "containers" / "registries.conf"
    conf.parent.mkdir(parents=True, exist_ok=True)
    # Permit HTTP, because this registry has no certificate.
    conf.write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
    return subprocess.run(
        ["bash", "-ec", script.replace("skopeo login", login)],
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "REGISTRY_AUTH_FILE": "auth.json"},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def test_skopeo_pushes_to_a_registry_with_login(tmp_path: Path, archive: tuple[Path, str]) -> None:
    require("skopeo")
    file, digest = archive
    with serve_registry(tmp_path, login=True) as url:
        address = url.split("/")[2]
        with pytest.raises(ImageFailed, match=r"401: Unauthorized\n.*skopeo login"):
            registry.Repository(f"http://{address}/theano-fast").push(file, "openblas")
        wrong = run_login(address, "wrong", tmp_path)
        assert wrong.returncode != 0
        assert len(wrong.stderr.splitlines()) == 1
        assert "invalid username/password" in wrong.stderr
        done = run_login(address, "secret", tmp_path)
        assert done.returncode == 0, done.stderr
        inspect = ["skopeo", "inspect", "--raw", "--tls-verify=false", "--creds=me:secret"]
        inspect.append(f"docker://{address}/theano-fast:openblas")
        inspected = subprocess.run(inspect, capture_output=True, check=True)
        assert digest == f"sha256:{hashlib.sha256(inspected.stdout).hexdigest()}"
