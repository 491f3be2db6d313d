"""Define the errors that users can act on, each with its own exit code and a hint."""

from __future__ import annotations


class TheanoFastError(Exception):
    """An error that the user can act on.

    Args:
        message: the failure and its reason.
        hint: the user's next step; "" to print none.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  -> {self.hint}" if self.hint else message


class UsageError(TheanoFastError):
    """A name or flag is unknown, a file does not exist, or flags exclude each other."""

    exit_code = 2


class ConfigurationError(TheanoFastError):
    """stacks.toml or a recipe is invalid."""

    exit_code = 3


class SourceUnavailable(TheanoFastError):
    """A source archive is not available from any origin."""

    exit_code = 4


class HashMismatch(TheanoFastError):
    """A source archive does not have the pinned SHA-256."""

    exit_code = 5


class HostToolMissing(TheanoFastError):
    """The host lacks a compiler or another tool that a build needs."""

    exit_code = 6


class BuildFailed(TheanoFastError):
    """A recipe did not build, or its package failed a test."""

    exit_code = 7


class SolveFailed(TheanoFastError):
    """No set of packages satisfies a stack's requirements."""

    exit_code = 8


class EnvironmentFailed(TheanoFastError):
    """An environment could not be installed, or does not exist."""

    exit_code = 9


class VerifyFailed(TheanoFastError):
    """An environment, archive or image failed its verification."""

    exit_code = 10


class DiskFull(TheanoFastError):
    """A file system is full."""

    exit_code = 11


class CommandFailed(TheanoFastError):
    """A command failed for a reason that no other error describes."""

    exit_code = 12


class ImageFailed(TheanoFastError):
    """An image could not be built, saved or pushed."""

    exit_code = 13


class NotReproducible(TheanoFastError):
    """Two builds from the same inputs, or a build and a lock file, have different bytes."""

    exit_code = 14


class ConformanceFailed(TheanoFastError):
    """The outcomes of Theano's or a program's tests differ from its conformance.toml."""

    exit_code = 15


class NotWritable(TheanoFastError):
    """This user may not write to a file or directory."""

    exit_code = 16


class FuzzingFailed(TheanoFastError):
    """A random program gave a wrong result that fuzz/known.toml does not list."""

    exit_code = 17
