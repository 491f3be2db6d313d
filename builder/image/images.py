"""Build a stack's Docker image, verify it in a container, tag it, and save it as an archive."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from python_on_whales import DockerClient

from builder.common import paths
from builder.common.errors import UsageError, VerifyFailed
from builder.common.processes import run, run_on_terminal
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
        reference: its name, such as ``theano-fast:openblas``. Only a verified image has this tag.
        stack: the stack's name.
        id: the SHA-256 of its configuration, as Docker shows it.
        base: the base image.
        size: the unpacked size in bytes.
        layers: the sizes of its layers in bytes, by name. Their sum is ``size``.
        diff_ids: the SHA-256 of each layer's tar archive.
    """

    reference: str
    stack: str
    id: str
    base: Base
    size: int
    layers: dict[str, int]
    diff_ids: tuple[str, ...]


def format_reference(stack: str) -> str:
    """Return the name of a stack's image, such as ``theano-fast:openblas-keras``."""
    # Docker does not permit WITH ("+") in a tag.
    return f"{REPOSITORY}:{stack.replace(WITH, '-')}"


def make_labels(lock: Lock, base: Base) -> dict[str, str]:
    """Make an image's labels: OCI's predefined annotations, the stack, and the lock's digest."""
    versions = {package.name: package.file.name.rsplit("-", 2)[1] for package in lock.packages}
    description = f"Theano in the stack {lock.stack}, verified"
    if versions.get("python", "").startswith("2."):
        description += "; its Python 2.7 has had no security fixes since 2020"
    return {
        "org.opencontainers.image.title": format_reference(lock.stack),
        "org.opencontainers.image.description": description,
        "org.opencontainers.image.version": versions["theano-fast"],
        "org.opencontainers.image.base.name": base.reference,
        STACK_LABEL: lock.stack,
        LOCK_LABEL: f"sha256:{lock.digest}",
    }


def require_free_tag(docker: DockerClient, stack: str) -> None:
    """Require that no image of another project has a stack's tag.

    Raises:
        UsageError: an image without this project's label has the tag.
    """
    name = format_reference(stack)
    if not docker.image.exists(name):
        return
    if STACK_LABEL not in (docker.image.inspect(name).config.labels or {}):
        raise UsageError(
            f"the tag {name} names an image of another project",
            f"give that image another name: docker tag {name} NAME && docker rmi {name}",
        )


def build_image(
    docker: DockerClient, lock: Lock, base: Base, context: Path, *, no_cache: bool = False
) -> Image:
    """Build a stack's image from a build context, without a tag.

    Args:
        context: the directory that ``build_context.write_context`` wrote.
        no_cache: do not use Docker's cache of layers.

    Raises:
        ImageFailed: Docker could not build the image.
        DiskFull: the daemon's disk is full.
    """
    name = format_reference(lock.stack)
    with daemon.translate_errors(f"{name} could not be built"):
        built_image = docker.legacy_build(
            context,
            file=paths.DOCKERFILE,
            build_args={"BASE_IMAGE": base.reference},
            labels=make_labels(lock, base),
            cache=not no_cache,
            network="none",
        )
    layers = _measure_layers(docker, built_image.id, base)
    diff_ids = tuple(built_image.root_fs.layers or ())
    return Image(name, lock.stack, built_image.id, base, built_image.size, layers, diff_ids)


def _measure_layers(docker: DockerClient, image: str, base: Base) -> dict[str, int]:
    """Return the sizes in bytes of the base and of the Dockerfile's two ADD steps."""
    # Run docker itself: python-on-whales does not support `docker history`. Docker prints the last
    # step first.
    command = [*docker.client_config.docker_cmd, "history", "--human=false"]
    lines = run([*command, "--format", "{{.Size}}", image]).output.splitlines()
    stack, dependencies, *_ = (int(line) for line in lines if int(line))
    return {"base": base.size, "dependencies": dependencies, "stack": stack}


def verify_image(docker: DockerClient, image: Image) -> dict[str, Any]:
    """Run ``theano-fast verify`` in a read-only container without network and privileges.

    Returns:
        The JSON of ``theano-fast verify``.

    Raises:
        VerifyFailed: a check failed.
        ImageFailed: the container did not start.
    """
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        with (
            daemon.translate_errors(f"{image.reference} could not be run"),
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
            run_on_terminal([*docker.client_config.docker_cmd, "logs", "--follow", container.id])
            status = docker.wait(container)
        if status != 0:
            raise VerifyFailed(
                f"verification of {image.reference} failed (exit status {status})",
                f"the failed checks are above; to run the image: docker run --rm {image.id}",
            )
        report: dict[str, Any] = json.loads(Path(directory, "verify.json").read_text("utf-8"))
    return report


def tag_image(docker: DockerClient, image: Image) -> None:
    """Tag a verified image, and remove its stack's older images, which lose the tag."""
    with daemon.translate_errors(f"{image.reference} could not be tagged"):
        docker.tag(image.id, image.reference)
        docker.image.prune(filters=[("label", f"{STACK_LABEL}={image.stack}")])


def save_image(docker: DockerClient, image: Image, file: Path) -> str:
    """Write an image atomically as an OCI archive. ``docker load`` can also read the archive.

    Returns:
        The digest of the manifest. It depends only on the layers and the configuration.

    Raises:
        ImageFailed: Docker could not save the image.
    """
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as directory:
        docker_archive, part = Path(directory, "saved.tar"), Path(directory, "oci.tar")
        with daemon.translate_errors(f"{image.reference} could not be saved"):
            docker.save(image.id, output=docker_archive)
        digest = oci.convert_archive(docker_archive, part, image.reference, SOURCE_DATE_EPOCH)
        part.replace(file)
    return digest
