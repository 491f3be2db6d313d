"""Replace git's commit in measurements, because unit tests start no processes."""

from __future__ import annotations

import pytest

from builder.measure import provenance


@pytest.fixture(autouse=True)
def _no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "read_commit", lambda: "")
