"""Test the check of a base image's glibc, and the name of the default base image."""

from __future__ import annotations

import pytest

from builder.common.errors import ImageFailed
from builder.image import base
from builder.image.base import Base


def test_a_base_image_with_an_older_glibc_is_refused() -> None:
    old = Base("debian:bullseye", "sha256:0", 5, "2.9")
    with pytest.raises(ImageFailed, match=r"need glibc 2\.36.*debian:bullseye has glibc 2\.9"):
        base.require_glibc(old, "2.36")
    base.require_glibc(old, "2.9")
    base.require_glibc(old, "2.4")


def test_the_default_base_is_named_after_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.debian, "read_host_release", lambda: "trixie")
    assert base.format_default_reference() == "theano-fast-base:trixie"
