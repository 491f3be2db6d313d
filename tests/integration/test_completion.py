"""Complete ``theano-fast`` command lines in bash, with the script that the command generates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# Print the completions of the last argument. $0 is the theano-fast command.
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
