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

# The files that Debian's slim images omit.
OMIT = (
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
)
PROBE = "getconf GNU_LIBC_VERSION || true"
CARRY = "run ./invoke base-image on a host with a network; copy with docker save and docker load"
HINT = "install mmdebstrap, or name a base: --base=debian:bookworm-slim@sha256:..."


@dataclass(frozen=True)
class Base:
    """A base image of ``size`` bytes."""

    reference: str
    id: str
    size: int
    glibc: str


def format_default_reference() -> str:
    """Return the reference of the base image of :func:`create_base`."""
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
            debian.bootstrap(tarball, OMIT, SOURCE_DATE_EPOCH)
        except LookupError as error:
            raise HostToolMissing(f"{reference} cannot be made: {error}", HINT) from error
        except CommandFailed as error:
            raise daemon.translate_error(f"{reference} cannot be made", str(error)) from error
        with daemon.translate_errors(f"{reference} cannot be imported"):
            docker.import_(tarball, tag=reference)
    return reference


def find_base(docker: DockerClient, reference: str, *, offline: bool = False) -> Base:
    """Find a base image; if it is absent, pull it, or make the default image.

    Args:
        reference: the image's reference; "" for the default.

    Raises:
        ImageFailed: the image does not exist, its C library is not glibc, or it is not on this host
            and ``offline`` is set.
    """
    reference = reference or format_default_reference()
    if not docker.image.exists(reference):
        if offline:
            raise ImageFailed(f"base image {reference} is absent, and --offline is set", CARRY)
        if reference == format_default_reference():
            create_base(docker)
    with daemon.translate_errors(f"base image {reference} cannot be used"):
        answer = docker.run(
            reference, ["-c", PROBE], entrypoint="sh", networks=["none"], remove=True
        )
        image = docker.image.inspect(reference)
    name, _, version = answer.strip().partition(" ")
    if name != "glibc":
        raise ImageFailed(f"base image {reference} has no glibc", HINT)
    return Base(reference, image.id, image.size, version)


def require_glibc(base: Base, glibc: str) -> None:
    """Require that a base image has at least the version ``glibc``.

    Raises:
        ImageFailed: the image's glibc is older.
    """
    if toolchain.numbers(base.glibc) < toolchain.numbers(glibc):
        raise ImageFailed(
            f"the packages need glibc {glibc}; base image {base.reference} has {base.glibc}",
            "choose a newer base image",
        )
