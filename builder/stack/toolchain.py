"""The compilers that build packages, which are packages too, and the C library that these need."""

from __future__ import annotations

import os
from functools import cache

import rattler_build

from builder.common import paths
from builder.common.errors import HostToolMissing

FILE = paths.RECIPES / "variants.yaml"


@cache
def variant() -> dict[str, str]:
    """The variant keys that ``compiler()`` and ``stdlib()`` in recipes stand for."""
    found = rattler_build.VariantConfig.from_file(FILE)
    return {key: str(values[0]) for key, values in found.items()}


def floor() -> str:
    """The oldest version of glibc that packages run on."""
    return variant()["c_stdlib_version"]


def require_host() -> None:
    """Refuse a host whose C library is older than that: the compilers do not run there either.

    Raises:
        HostToolMissing: it is, or is another C library than glibc.
    """
    found = glibc()
    if found == (0,):
        raise HostToolMissing("the C library is not glibc", "build on a GNU/Linux host")
    if found < numbers(floor()):
        version = ".".join(map(str, found))
        raise HostToolMissing(
            f"this host has glibc {version}, and packages need {floor()} or newer",
            "build, and run, on a newer release: RHEL 8, Debian 11, Ubuntu 20.04 or later",
        )


def glibc() -> tuple[int, ...]:
    """The version of this host's glibc; (0,) where the C library is another."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return (0,)
    return numbers(version) if name == "glibc" else (0,)


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers that compare."""
    return tuple(map(int, version.split(".")))
