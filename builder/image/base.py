"""Make the base image: a minimal Debian without documentation and locales."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from python_on_whales import DockerClient

from builder.common import progress
from builder.common.errors import CommandFailed, HostToolMissing, ImageFailed
from builder.image import daemon
from builder.package.engine import SOURCE_DATE_EPOCH
from builder.source import debian
from builder.stack import toolchain

# Glob patterns of the files that Debian's slim images omit.
OMITTED_FILES = (
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
)
# A shell command that prints "glibc 2.36", or nothing if the C library is not glibc.
PRINT_GLIBC = "getconf GNU_LIBC_VERSION || true"
OFFLINE_HINT = (
    "run ./invoke base-image on a host with a network; copy the image with docker save and docker "
    "load"
)


@dataclass(frozen=True)
class Base:
    """A base image.

    Attributes:
        reference: its name, such as ``debian:bookworm-slim``.
        id: its ID, as Docker shows it.
        size: the unpacked size in bytes.
        glibc: the version of its glibc, such as ``2.36``.
    """

    reference: str
    id: str
    size: int
    glibc: str


def format_default_reference() -> str:
    """Return the reference of the default base image, such as ``theano-fast-base:bookworm``."""
    return f"theano-fast-base:{debian.read_host_release()}"


def create_base(docker: DockerClient) -> str:
    """Make the default base image from the host's Debian mirrors; return its reference.

    Raises:
        HostToolMissing: the host is not a Debian system, or has no mmdebstrap.
        ImageFailed: the image could not be made or imported.
        DiskFull: the disk is full.
    """
    reference = format_default_reference()
    progress.say(f"making {reference}")
    with tempfile.TemporaryDirectory() as directory:
        tarball = Path(directory, "base.tar")
        try:
            debian.bootstrap(tarball, OMITTED_FILES, SOURCE_DATE_EPOCH)
        except LookupError as error:
            raise HostToolMissing(
                f"base image {reference} cannot be created: {error}",
                "install mmdebstrap, or name a base image: --base=debian:bookworm-slim@sha256:...",
            ) from error
        except CommandFailed as error:
            raise daemon.translate_error(
                f"base image {reference} cannot be created", str(error)
            ) from error
        with daemon.translate_errors(f"base image {reference} cannot be imported"):
            docker.import_(tarball, tag=reference)
    return reference


def find_base(docker: DockerClient, reference: str, *, offline: bool = False) -> Base:
    """Find a base image on this host. If it is absent, pull it, or make the default base image.

    Args:
        reference: the image's reference; "" for the default base image.
        offline: neither pull nor make an image.

    Raises:
        ImageFailed: the image does not exist, its C library is not glibc, or it is not on this host
            and ``offline`` is set.
        HostToolMissing: the host cannot make the default base image.
    """
    reference = reference or format_default_reference()
    if not docker.image.exists(reference):
        if offline:
            raise ImageFailed(
                f"base image {reference} is absent, and --offline is set", OFFLINE_HINT
            )
        if reference == format_default_reference():
            create_base(docker)
    with daemon.translate_errors(f"base image {reference} cannot be used"):
        answer = docker.run(
            reference, ["-c", PRINT_GLIBC], entrypoint="sh", networks=["none"], remove=True
        )
        image = docker.image.inspect(reference)
    name, _, version = answer.strip().partition(" ")
    if name != "glibc":
        raise ImageFailed(
            f"base image {reference} has no glibc",
            "name another base image, such as --base=debian:bookworm-slim@sha256:...",
        )
    return Base(reference, image.id, image.size, version)


def require_glibc(base: Base, glibc: str) -> None:
    """Require that a base image has the version ``glibc`` of glibc, or a newer version.

    Raises:
        ImageFailed: the image's glibc is older.
    """
    if toolchain.numbers(base.glibc) < toolchain.numbers(glibc):
        raise ImageFailed(
            f"the packages need glibc {glibc}; base image {base.reference} has glibc {base.glibc}",
            "choose a newer base image",
        )
