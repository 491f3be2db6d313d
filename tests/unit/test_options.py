"""Test that an option is refused if its value is a path that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common.errors import UsageError
from builder.options import Options


@pytest.mark.parametrize("flag", ["sources", "bundle", "amdlibm_archive"])
def test_an_option_with_a_missing_path_is_refused(flag: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--{flag.replace('_', '-')}"):
        Options(**{flag: tmp_path / "none"})
