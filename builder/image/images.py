"""A stack's image: built, proved in a container, and only then tagged."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from python_on_whales import DockerClient

from builder.common import paths
from builder.common.errors import UsageError, VerifyFailed
from builder.common.processes import run, show
from builder.environment.envs import Lock
from builder.image import daemon, oci
from builder.image.base import Base
from builder.package.engine import SOURCE_DATE_EPOCH
from builder.stack.stacks import WITH

REPOSITORY = "theano-fast"
STACK_LABEL = "theano-fast.stack"
LOCK_LABEL = "theano-fast.lock"


@dataclass(frozen=True)
class Image:
    """A built image.

    Attributes:
        id: the SHA-256 of its configuration, as Docker shows it.
        size: in bytes, unpacked, and ``layers`` its parts.
        diff_ids: the SHA-256 of each layer's tar archive.
    """

    reference: str
    id: str
    base: Base
    size: int
    layers: dict[str, int]
    diff_ids: tuple[str, ...]


def reference(stack: str) -> str:
    """The name of a stack's image."""
    # A tag has no such character.
    return f"{REPOSITORY}:{stack.replace(WITH, '-')}"


def labels(lock: Lock, base: Base) -> dict[str, str]:
    """What an image says of itself: OCI's predefined annotations, the stack, the lock's digest."""
    versions = {package.name: package.file.name.rsplit("-", 2)[1] for package in lock.packages}
    description = "Theano on one numeric stack, verified"
    if versions.get("python", "").startswith("2."):
        description += "; its Python 2.7 has had no security fixes since 2020"
    return {
        "org.opencontainers.image.title": reference(lock.stack),
        "org.opencontainers.image.description": description,
        "org.opencontainers.image.version": versions["theano-fast"],
        "org.opencontainers.image.base.name": base.reference,
        STACK_LABEL: lock.stack,
        LOCK_LABEL: f"sha256:{lock.digest}",
    }


def claim(docker: DockerClient, stack: str) -> None:
    """See to it that a stack's tag is free, or names an image of this project.

    Raises:
        UsageError: another's image has the tag.
    """
    name = reference(stack)
    if not docker.image.exists(name):
        return
    if STACK_LABEL not in (docker.image.inspect(name).config.labels or {}):
        raise UsageError(
            f"the tag {name} is another image's",
            f"keep that under another name: docker tag {name} NAME && docker rmi {name}",
        )


def build(
    docker: DockerClient, lock: Lock, base: Base, context: Path, *, anew: bool = False
) -> Image:
    """Build a stack's image from its context, without a tag.

    Args:
        anew: take no layer from the image that was built before.

    Raises:
        ImageFailed: Docker could not build it.
        DiskFull: the daemon's disk is full.
    """
    name = reference(lock.stack)
    with daemon.failures(f"{name} could not be built"):
        built = docker.legacy_build(
            context,
            file=paths.DOCKERFILE,
            build_args={"BASE_IMAGE": base.reference},
            labels=labels(lock, base),
            cache=not anew,
            network="none",
        )
    layers = _layers(docker, built.id, base)
    return Image(name, built.id, base, built.size, layers, tuple(built.root_fs.layers or ()))


def _layers(docker: DockerClient, image: str, base: Base) -> dict[str, int]:
    """The bytes that the Dockerfile's steps added; its last two ADD."""
    # python-on-whales has no `history`.
    command = [*docker.client_config.docker_cmd, "history", "--human=false"]
    lines = run([*command, "--format", "{{.Size}}", image]).output.splitlines()
    stack, dependencies, *_ = (int(line) for line in lines if int(line))
    return {"base": base.size, "dependencies": dependencies, "stack": stack}


def prove(docker: DockerClient, image: Image) -> dict[str, Any]:
    """Run ``theano-fast verify`` in a container with as few rights as a user may give it.

    Returns:
        Its JSON.

    Raises:
        VerifyFailed: a check failed.
        ImageFailed: the container did not start.
    """
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        with (
            daemon.failures(f"{image.reference} could not be run"),
            docker.run(
                image.id,
                ["theano-fast", "verify", "--json", "/report/verify.json"],
                volumes=[(directory, "/report")],
                user="65534:65534",
                read_only=True,
                tmpfs=[Path("/tmp")],
                networks=["none"],
                detach=True,
            ) as container,
        ):
            show([*docker.client_config.docker_cmd, "logs", "--follow", container.id])
            status = docker.wait(container)
        if status != 0:
            raise VerifyFailed(
                f"{image.reference} does not prove itself (exit status {status})",
                f"the failed checks are above; it has no tag: docker run --rm {image.id}",
            )
        report: dict[str, Any] = json.loads(Path(directory, "verify.json").read_text("utf-8"))
    return report


def tag(docker: DockerClient, image: Image) -> None:
    """Give a proved image its tag, and remove those of its stack that are without one by now."""
    with daemon.failures(f"{image.reference} could not be tagged"):
        docker.tag(image.id, image.reference)
        stack = image.reference.removeprefix(f"{REPOSITORY}:")
        docker.image.prune(filters=[("label", f"{STACK_LABEL}={stack}")])


def save(docker: DockerClient, image: Image, file: Path) -> str:
    """Write an image as an OCI archive that docker load reads too, all of it or nothing.

    Returns:
        The digest of its manifest: the same for each image of the same layers.

    Raises:
        ImageFailed: Docker could not save it.
    """
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as directory:
        saved, part = Path(directory, "saved.tar"), Path(directory, "oci.tar")
        with daemon.failures(f"{image.reference} could not be saved"):
            docker.save(image.id, output=saved)
        digest = oci.convert(saved, part, image.reference, SOURCE_DATE_EPOCH)
        part.replace(file)
    return digest
