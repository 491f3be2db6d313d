"""The base image: Debian, as small as it goes; the environment brings all else."""

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

# What Debian's slim images leave out.
OMIT = (
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
)
PROBE = "getconf GNU_LIBC_VERSION || true"
CARRY = "run ./invoke base-image on a host with a network; docker save and docker load carry it"
HINT = "install mmdebstrap, or name a base: --base=debian:bookworm-slim@sha256:..."


@dataclass(frozen=True)
class Base:
    """An image that others are built on, of ``size`` bytes."""

    reference: str
    id: str
    size: int
    glibc: str


def default() -> str:
    """The reference of the base that :func:`create` makes."""
    return f"theano-fast-base:{debian.release()}"


def create(docker: DockerClient) -> str:
    """Make the default base from the host's Debian mirrors; its reference.

    Raises:
        HostToolMissing: the host is no Debian, or has no mmdebstrap.
        ImageFailed: it could not be made or imported.
        DiskFull: the disk is.
    """
    reference = default()
    progress.say(f"making {reference}")
    with tempfile.TemporaryDirectory() as directory:
        tarball = Path(directory, "base.tar")
        try:
            debian.bootstrap(tarball, OMIT, SOURCE_DATE_EPOCH)
        except LookupError as error:
            raise HostToolMissing(f"{reference} cannot be made: {error}", HINT) from error
        except CommandFailed as error:
            raise daemon.explained(f"{reference} cannot be made", str(error)) from error
        with daemon.failures(f"{reference} cannot be imported"):
            docker.import_(tarball, tag=reference)
    return reference


def find(docker: DockerClient, reference: str, *, offline: bool = False) -> Base:
    """The base of that name, pulled if it is not there; without a name the default, made then.

    Raises:
        ImageFailed: there is no such image, its C library is not glibc, or it takes a download
            although ``offline`` is set.
    """
    reference = reference or default()
    if not docker.image.exists(reference):
        if offline:
            raise ImageFailed(f"base image {reference} is not there, and --offline is set", CARRY)
        if reference == default():
            create(docker)
    with daemon.failures(f"base image {reference} cannot be used"):
        answer = docker.run(
            reference, ["-c", PROBE], entrypoint="sh", networks=["none"], remove=True
        )
        found = docker.image.inspect(reference)
    name, _, version = answer.strip().partition(" ")
    if name != "glibc":
        raise ImageFailed(f"base image {reference} has no glibc", HINT)
    return Base(reference, found.id, found.size, version)


def require(base: Base, glibc: str) -> None:
    """Refuse a base on which packages that need ``glibc`` would not run.

    Raises:
        ImageFailed: its C library is older.
    """
    if toolchain.numbers(base.glibc) < toolchain.numbers(glibc):
        raise ImageFailed(
            f"the packages need glibc {glibc}; base image {base.reference} has {base.glibc}",
            "choose a newer one",
        )
