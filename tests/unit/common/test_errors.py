from __future__ import annotations

from builder.common import errors


def family() -> list[type[errors.TheanoFastError]]:
    return errors.TheanoFastError.__subclasses__()


def test_each_cause_has_its_own_exit_code() -> None:
    codes = [error.exit_code for error in family()]
    assert len(set(codes)) == len(codes)
    assert not {0, 1} & set(codes)


def test_a_message_ends_with_what_to_do() -> None:
    assert str(errors.UsageError("unknown stack 'x'", "choose one of: a")) == (
        "unknown stack 'x'\n  -> choose one of: a"
    )
    assert str(errors.UsageError("plain")) == "plain"
