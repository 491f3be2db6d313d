"""Test that each kind of error has its own exit code, and that a message ends with its hint."""

from __future__ import annotations

from builder.common import errors


def list_error_types() -> list[type[errors.TheanoFastError]]:
    return errors.TheanoFastError.__subclasses__()


def test_each_kind_of_error_has_its_own_exit_code() -> None:
    codes = [error.exit_code for error in list_error_types()]
    assert len(set(codes)) == len(codes)
    assert not {0, 1} & set(codes)


def test_a_message_ends_with_its_hint() -> None:
    assert str(errors.UsageError("unknown stack 'x'", "choose one of: a")) == (
        "unknown stack 'x'\n  -> choose one of: a"
    )
    assert str(errors.UsageError("plain")) == "plain"
