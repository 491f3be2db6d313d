"""Connect to the Docker daemon, and translate its errors into this project's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from python_on_whales import ClientNotFoundError, DockerClient
from python_on_whales.exceptions import DockerException

from builder.common.errors import DiskFull, HostToolMissing, ImageFailed, TheanoFastError


def connect() -> DockerClient:
    """Return a client of a running daemon.

    Raises:
        HostToolMissing: the host has no ``docker`` command, no daemon runs, or the user may not use
            the daemon.
    """
    docker = DockerClient()
    try:
        with translate_errors("Docker cannot be used"):
            docker.version()
    except ClientNotFoundError as error:
        raise HostToolMissing(
            "the command docker is not on PATH", "as root: apt-get install docker.io"
        ) from error
    return docker


@contextmanager
def translate_errors(summary: str) -> Iterator[None]:
    """Translate Docker's errors in a context into this project's errors.

    Args:
        summary: the first line of the message.
    """
    try:
        yield
    except DockerException as error:
        raise translate_error(summary, error.stderr or str(error)) from error


def translate_error(summary: str, stderr: str) -> TheanoFastError:
    """Return the error that fits the stderr of a failed ``docker`` command, with a hint.

    Args:
        summary: the first line of the message.
    """
    message, lowercase = f"{summary}:\n{stderr.strip()}", stderr.lower()
    if "cannot connect to the docker daemon" in lowercase:
        return HostToolMissing(message, "start the daemon, as root: systemctl start docker")
    if "permission denied" in lowercase and "socket" in lowercase:
        return HostToolMissing(message, "as root: adduser USER docker; then log in again")
    if "no space left on device" in lowercase:
        return DiskFull(message, "free some space (docker system prune may help) and run again")
    return ImageFailed(message, "remove the cause and run again")
