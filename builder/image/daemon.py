"""The Docker daemon: reach it, and tell what went wrong in this project's terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from python_on_whales import ClientNotFoundError, DockerClient
from python_on_whales.exceptions import DockerException

from builder.common.errors import DiskFull, HostToolMissing, ImageFailed, TheanoFastError


def connect() -> DockerClient:
    """A client whose daemon answers.

    Raises:
        HostToolMissing: there is no ``docker`` command, no daemon, or no right to use it.
    """
    docker = DockerClient()
    try:
        with failures("Docker cannot be used"):
            docker.version()
    except ClientNotFoundError as error:
        raise HostToolMissing(
            "the command docker is not on PATH", "as root: apt-get install docker.io"
        ) from error
    return docker


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Raise Docker's errors as this project's; ``what`` is the message's first line."""
    try:
        yield
    except DockerException as error:
        raise explained(what, error.stderr or str(error)) from error


def explained(what: str, stderr: str) -> TheanoFastError:
    """The error that a failed ``docker`` command's messages stand for."""
    message, told = f"{what}:\n{stderr.strip()}", stderr.lower()
    if "cannot connect to the docker daemon" in told:
        return HostToolMissing(message, "start the daemon, as root: systemctl start docker")
    if "permission denied" in told and "socket" in told:
        return HostToolMissing(message, "as root: adduser USER docker; then log in again")
    if "no space left on device" in told:
        return DiskFull(message, "free some space, docker system prune may help, and run again")
    return ImageFailed(message, "mend the cause and run again")
