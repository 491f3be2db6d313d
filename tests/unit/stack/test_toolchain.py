from __future__ import annotations

import os

import pytest

from builder.common.errors import HostToolMissing
from builder.stack import toolchain


def test_compilers_and_libc_are_variant_keys() -> None:
    found = toolchain.variant()
    assert found["c_compiler"] == "gcc"
    assert toolchain.floor() == found["c_stdlib_version"] == "2.28"


def test_a_host_of_the_floor_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: f"glibc {toolchain.floor()}")
    toolchain.require_host()


@pytest.mark.parametrize(
    ("libc", "told"), [("glibc 2.9", r"has glibc 2\.9, .* need 2\.28"), (None, "not glibc")]
)
def test_a_host_that_is_too_old_is_told(
    libc: str | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: libc)
    with pytest.raises(HostToolMissing, match=told):
        toolchain.require_host()
