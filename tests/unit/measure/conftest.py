"""Replace the commit in measurements by an empty string, because unit tests cannot start git."""

from __future__ import annotations

import pytest

from builder.measure import provenance


@pytest.fixture(autouse=True)
def _replace_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "read_commit", lambda: "")
