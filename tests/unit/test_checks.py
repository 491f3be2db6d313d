"""Which tests are run, and when they have passed."""

from __future__ import annotations

import pytest

from builder import checks, run
from builder.errors import CommandFailed


@pytest.mark.parametrize(
    ("code", "select", "passes"),
    [(0, "", True), (5, "", False), (5, "scan", True), (1, "scan", False)],
)
def test_only_what_is_selected_may_be_absent(
    code: int, select: str, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "show", lambda *_, **__: code)
    if passes:
        checks.test(unit=True, select=select)
    else:
        with pytest.raises(CommandFailed, match="tests/unit"):
            checks.test(unit=True, select=select)
