"""Read the compilers that build packages, and the oldest glibc that packages support."""

from __future__ import annotations

import os
from functools import cache

import rattler_build

from builder.common import paths
from builder.common.errors import HostToolMissing

FILE = paths.RECIPES / "variants.yaml"
# Stands for the version of a C library other than glibc.
NOT_GLIBC = (0,)


@cache
def read_variant() -> dict[str, str]:
    """Read the values of the variant keys, which ``compiler()`` and ``stdlib()`` in recipes use."""
    configuration = rattler_build.VariantConfig.from_file(FILE)
    return {key: str(values[0]) for key, values in configuration.items()}


def read_oldest_glibc() -> str:
    """Return the oldest version of glibc that packages support."""
    return read_variant()["c_stdlib_version"]


def require_host_glibc() -> None:
    """Require a host whose glibc is not older than the oldest supported glibc.

    The compilers are packages too, so they need this glibc.

    Raises:
        HostToolMissing: the host's glibc is older, or its C library is not glibc.
    """
    version = detect_glibc()
    if version == NOT_GLIBC:
        raise HostToolMissing("the C library is not glibc", "build on a GNU/Linux host")
    if version < numbers(read_oldest_glibc()):
        raise HostToolMissing(
            f"this host has glibc {'.'.join(map(str, version))}, "
            f"but packages need {read_oldest_glibc()} or newer",
            "build and run on a newer release: RHEL 8, Debian 11, Ubuntu 20.04 or later",
        )


def detect_glibc() -> tuple[int, ...]:
    """Return the version of the host's glibc; NOT_GLIBC if the host has another C library."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return NOT_GLIBC
    return numbers(version) if name == "glibc" else NOT_GLIBC


def numbers(version: str) -> tuple[int, ...]:
    """Parse a version such as ``2.28`` into a tuple of integers, for comparisons."""
    return tuple(map(int, version.split(".")))
