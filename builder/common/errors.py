"""The one error family: each cause has its own exit code, each message says what to do next."""

from __future__ import annotations


class TheanoFastError(Exception):
    """An error the user can act on.

    Args:
        message: what went wrong, naming the thing and the reason.
        hint: what to do next.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  -> {self.hint}" if self.hint else message


class UsageError(TheanoFastError):
    """A name or flag that does not exist, or flags that exclude each other."""

    exit_code = 2


class ConfigurationError(TheanoFastError):
    """stacks.toml or a recipe says something impossible."""

    exit_code = 3


class SourceUnavailable(TheanoFastError):
    """A source archive could not be had from any place."""

    exit_code = 4


class HashMismatch(TheanoFastError):
    """A source archive's bytes are not the pinned ones."""

    exit_code = 5


class HostToolMissing(TheanoFastError):
    """The host lacks a compiler or another tool that a build needs."""

    exit_code = 6


class BuildFailed(TheanoFastError):
    """A recipe did not build, or its package did not pass its tests."""

    exit_code = 7


class SolveFailed(TheanoFastError):
    """No set of packages satisfies a stack."""

    exit_code = 8


class EnvironmentFailed(TheanoFastError):
    """An environment could not be installed, or is not there."""

    exit_code = 9


class VerifyFailed(TheanoFastError):
    """An environment does not prove itself."""

    exit_code = 10


class DiskFull(TheanoFastError):
    """A file system has no room left."""

    exit_code = 11


class CommandFailed(TheanoFastError):
    """A command that has no more specific error exited non-zero."""

    exit_code = 12


class ImageFailed(TheanoFastError):
    """An image could not be built or saved."""

    exit_code = 13


class NotReproducible(TheanoFastError):
    """The same inputs gave other bytes."""

    exit_code = 14


class ConformanceFailed(TheanoFastError):
    """Theano's own tests did not end as recipes/theano/conformance.toml says."""

    exit_code = 15


class NotWritable(TheanoFastError):
    """A file or directory that this user may not write to."""

    exit_code = 16


class FuzzingFailed(TheanoFastError):
    """A random program gave another result than it should, and fuzz/known.toml does not list it."""

    exit_code = 17
