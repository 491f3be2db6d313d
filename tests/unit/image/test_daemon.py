"""Test the translation of Docker's messages into the builder's errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from python_on_whales.exceptions import DockerException

from builder.common import errors
from builder.image import daemon


@pytest.mark.parametrize(
    ("output", "error", "hint"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
            errors.HostToolMissing,
            "start the daemon",
        ),
        (
            "Got permission denied while trying to connect to the Docker daemon socket at unix:///",
            errors.HostToolMissing,
            "adduser",
        ),
        ("write /opt/x: no space left on device", errors.DiskFull, "free some space"),
        ("E: Could not get lock /x: open (13: Permission denied)", errors.ImageFailed, "the cause"),
    ],
)
def test_messages_of_docker_become_errors_of_the_builder(
    output: str, error: type[Exception], hint: str
) -> None:
    with pytest.raises(error, match="it failed") as caught, daemon.translate_errors("it failed"):
        raise DockerException(["docker"], 1, b"", output.encode())
    assert output in str(caught.value)
    assert hint in str(caught.value)


def test_a_host_without_docker_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.HostToolMissing, match="not on PATH"):
        daemon.connect()
