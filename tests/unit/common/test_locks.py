from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import locks
from builder.common.errors import CommandFailed


def test_a_directory_is_one_runs_at_a_time(tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "one"
    for _ in range(2):
        with (
            locks.alone(directory, "taken", "wait"),
            pytest.raises(CommandFailed, match="taken"),
            locks.alone(directory, "taken", "wait"),
        ):
            pass
