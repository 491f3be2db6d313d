"""Test the generated page of error messages: placeholders, groups and advice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from builder.documents import messages


def make_message(code: str) -> str:
    """Return the message template of a call in source code, from the call's first argument."""
    call = ast.parse(code).body[0].value  # type: ignore[attr-defined]
    return messages.make_template(call.args[:1])


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ('f("no such file")', "no such file"),
        ('f(f"{self.name} of {a.b()}:\\n{error!r}")', "NAME of \N{HORIZONTAL ELLIPSIS}: ERROR"),
        ('f("one" if a else f"other {x}")', "one / other X"),
        ("f(f\"it {'is' if a else 'was'}\" + \" so\")", "it is / was so"),
        ('f("%s has %d")', "\N{HORIZONTAL ELLIPSIS} has \N{HORIZONTAL ELLIPSIS}"),
        ("f(error)", ""),
    ],
)
def test_values_in_a_message_become_placeholders(code: str, text: str) -> None:
    assert make_message(code) == text


def test_messages_and_hints_are_grouped_by_exit_code() -> None:
    rows = messages.find_builder_messages()
    assert ("--quiet and --verbose exclude each other", "omit one of them") in rows[2]
    assert ("there is no python3", "put Python 3.10 or newer on PATH") in rows[6]
    assert len(rows) > 14


def test_messages_of_the_environments_programs_are_grouped_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        'raise AError(f"{x} is not that")\nraise AError("name")\ncode.append("if length == size")\n'
    )
    assert messages.find_environment_messages(tmp_path) == {"a.py": ["X is not that"]}


def test_every_exit_code_has_advice_and_all_advice_has_a_file() -> None:
    advice = messages.read_advice()
    codes = {str(kind.exit_code) for kind in messages.KINDS}
    assert set(advice["exit-codes"]) == codes
    for name, folder in messages.FOLDERS.items():
        assert set(advice[name]) <= set(messages.find_environment_messages(folder))
