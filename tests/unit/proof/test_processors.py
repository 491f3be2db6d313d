"""Test the kernel's binfmt_misc rule that starts programs in QEMU, and errors of emulation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builder.common.errors import HostToolMissing
from builder.proof import processors

# The first 20 bytes of a program for x86-64 and of a program for AArch64.
ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00"
X86_64, AARCH64 = ELF + b"\x3e\x00", ELF + b"\xb7\x00"


def is_matched(header: bytes) -> bool:
    """Return whether the kernel would apply the rule to a program with this header."""
    magic, mask = (
        part.decode("unicode_escape").encode("latin-1")
        for part in (processors.MAGIC, processors.MASK)
    )
    assert len(magic) == len(mask)
    return all(not (a ^ b) & c for a, b, c in zip(header, magic, mask, strict=True))


def test_the_rule_matches_x86_64_programs_that_are_not_marked(tmp_path: Path) -> None:
    assert is_matched(X86_64)
    assert not is_matched(AARCH64)
    program, copy = tmp_path / "program", tmp_path / "copy"
    program.write_bytes(X86_64)
    processors.mark(program, copy)
    assert not is_matched(copy.read_bytes())
    assert copy.stat().st_mode & 0o111 == 0o111


def test_the_error_names_the_package_of_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with (
        pytest.raises(HostToolMissing, match="qemu-user-static"),
        processors.emulate("Nehalem"),
    ):
        pass


def test_the_kernels_of_each_blas_are_named() -> None:
    document = {"facts": {"blas": [{"kernels": "Nehalem"}, {"error": "it does not answer"}]}}
    assert processors.format_kernels(document) == "Nehalem, -"
    assert processors.format_kernels({}) == "-"
