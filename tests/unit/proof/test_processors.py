"""The rule by which the kernel runs programs in QEMU, and the messages if it cannot."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builder.common.errors import HostToolMissing
from builder.proof import processors

# The first 20 bytes of the headers of a program for x86-64, and of another for AArch64.
ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00"
X86_64, AARCH64 = ELF + b"\x3e\x00", ELF + b"\xb7\x00"


def matches(header: bytes) -> bool:
    """Return whether binfmt_misc's comparison matches the rule with a program."""
    magic, mask = (
        part.decode("unicode_escape").encode("latin-1")
        for part in (processors.MAGIC, processors.MASK)
    )
    assert len(magic) == len(mask)
    return all(not (a ^ b) & c for a, b, c in zip(header, magic, mask, strict=True))


def test_the_rule_takes_programs_for_x86_64_that_are_not_marked(tmp_path: Path) -> None:
    assert matches(X86_64)
    assert not matches(AARCH64)
    program, copy = tmp_path / "program", tmp_path / "copy"
    program.write_bytes(X86_64)
    processors.mark(program, copy)
    assert not matches(copy.read_bytes())
    assert copy.stat().st_mode & 0o111 == 0o111


def test_a_host_without_qemu_is_told_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with (
        pytest.raises(HostToolMissing, match="qemu-user-static"),
        processors.emulated("Nehalem"),
    ):
        pass


def test_kernels_are_those_of_each_blas() -> None:
    document = {"facts": {"blas": [{"kernels": "Nehalem"}, {"error": "it does not answer"}]}}
    assert processors.kernels(document) == "Nehalem, -"
    assert processors.kernels({}) == "-"
