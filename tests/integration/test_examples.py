"""Check that each example prints the output in its docstring."""

from __future__ import annotations

import ast
import doctest
import textwrap
from pathlib import Path
from typing import Any

import pytest

from builder.common import paths

EXAMPLES = sorted((paths.ROOT / "examples").glob("*.py"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def read_expected_output(example: Path) -> str:
    """Return the text after "Prints:" in an example's docstring; "..." matches any text."""
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8"))) or ""
    return textwrap.dedent(docstring.partition("Prints:\n")[2]) + "\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_its_documented_output(example: Path, prefix: Path, run: Any) -> None:
    result = run(prefix / "bin" / "python", example)
    if result.stderr.startswith("no pictures: "):
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr
    assert "deprecat" not in result.stderr.lower()
    assert read_expected_output(example).strip()
    assert doctest.OutputChecker().check_output(
        read_expected_output(example), result.stdout, FLAGS
    ), result.stdout
