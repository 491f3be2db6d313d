"""Complete the words of the command in bash with the generated script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

COMPLETE = """
eval "$("$0" completion bash)"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_theano_fast
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pro", "profile"),
        ("cache clean --m", "--max-size"),
        ("profile run --a", "--advise"),
        ("record compare --t", "--tolerance"),
        ("rc dev", "development"),
    ],
)
def test_bash_completes(prefix: Path, run: Any, words: str, offered: str) -> None:
    command = prefix / "bin" / "theano-fast"
    result = run("bash", "-c", COMPLETE, command, "theano-fast", *words.split())
    assert (result.stdout, result.stderr) == (f"{offered}\n", "")
