"""Test the search for an NVIDIA GPU that Theano can use."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common.errors import HostToolMissing
from builder.common.processes import Finished
from builder.proof import nvidia


def set_answer(status: int, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the program that searches for a GPU: set its exit code and output."""

    def run(_: object, *, env: dict[str, str], **__: object) -> Finished:
        assert env["THEANO_FLAGS"] == "device=cpu"
        return Finished(status, output)

    monkeypatch.setattr(nvidia.processes, "run", run)


def test_the_name_of_the_gpu_is_the_last_line_of_the_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_answer(0, "a warning\nNVIDIA T4\n", monkeypatch)
    assert nvidia.find_gpu(Path("python"), {"THEANO_FLAGS": "device=cuda"}) == "NVIDIA T4"


@pytest.mark.parametrize(
    ("status", "output", "reason"),
    [(1, "a warning\nthere is no driver\n", "there is no driver"), (-11, "", "exit status -11")],
)
def test_a_missing_gpu_is_an_error_with_its_reason(
    status: int, output: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_answer(status, output, monkeypatch)
    with pytest.raises(HostToolMissing, match=f"used: {reason}\n.*omit --gpu"):
        nvidia.find_gpu(Path("python"), {})
