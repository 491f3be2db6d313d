"""Test that unknown Debian releases and ordinary users are refused."""

from __future__ import annotations

import os

import pytest

from builder.common.errors import HostToolMissing, UsageError
from builder.options import Options
from builder.proof import hosts


def test_an_unknown_release_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown release 'bulseye'"):
        hosts.verify_on_hosts("openblas", ["trixie", "bulseye"], Options())


def test_an_ordinary_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostToolMissing, match="root"):
        hosts.verify_on_hosts("openblas", ["trixie"], Options())
