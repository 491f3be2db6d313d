"""Test the variant keys of the compilers, and the check of the host's glibc."""

from __future__ import annotations

import os

import pytest

from builder.common.errors import HostToolMissing
from builder.stack import toolchain


def test_compilers_and_libc_are_variant_keys() -> None:
    variant = toolchain.read_variant()
    assert variant["c_compiler"] == "gcc"
    assert toolchain.read_oldest_glibc() == variant["c_stdlib_version"] == "2.28"


def test_a_host_with_the_oldest_supported_glibc_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: f"glibc {toolchain.read_oldest_glibc()}")
    toolchain.require_host_glibc()


@pytest.mark.parametrize(
    ("libc", "message"), [("glibc 2.9", r"has glibc 2\.9, .* need 2\.28"), (None, "not glibc")]
)
def test_a_host_with_an_older_or_another_libc_is_refused(
    libc: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: libc)
    with pytest.raises(HostToolMissing, match=message):
        toolchain.require_host_glibc()
