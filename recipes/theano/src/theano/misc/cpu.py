"""Choice of g++'s flags for a processor, by the instructions that it offers.

The name of a processor is not enough. g++ 10 mistakes newer processors for older processors (a Zen
4 for a Zen 2 with AVX-512) and tunes for these, and a virtual machine or an emulator hides
instructions. In this module, each level of instructions adds flags, for any name of a processor.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from typing import NamedTuple

# NumPy reads CPUID, and XGETBV for the registers that the system saves. Under QEMU's emulation,
# /proc/cpuinfo describes the host.
from numpy.core._multiarray_umath import __cpu_features__

_logger = logging.getLogger(__name__)


class Level(NamedTuple):
    """The instructions that a level adds: their name, NumPy's names of them, and g++'s flags."""

    name: str
    features: frozenset[str]
    flags: tuple[str, ...]


# A processor of a level is of all previous levels too. Without -march= and -mtune=, g++ tunes for
# no processor: the tuning for znver1 and znver2 does not vectorize some loops.
LEVELS = (
    Level("sse4.2", frozenset({"SSSE3", "SSE41", "POPCNT", "SSE42"}), ("-msse4.2", "-mpopcnt")),
    Level("avx", frozenset({"AVX"}), ("-mavx",)),
    Level("avx2", frozenset({"AVX2"}), ("-mavx2",)),
    # libtheano_functions uses AVX2 too: FMA without AVX2 (AMD's Piledriver) does not count.
    Level("fma", frozenset({"FMA3"}), ("-mfma",)),
    Level(
        "avx512",
        # AVX512_SKX means F, CD, BW, DQ and VL.
        frozenset({"AVX512F", "AVX512_SKX"}),
        (
            *("-mavx512f", "-mavx512cd", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
            "-mprefer-vector-width=512",
        ),
    ),
)
# With these flags, g++ itself chooses, and its choice can differ between nodes of a cluster.
NATIVE = frozenset({"-march=native", "--march=native", "-mtune=native"})


def processor_levels(features: Iterable[str]) -> list[Level]:
    """Return the levels of a processor, by NumPy's names of its features."""
    features = frozenset(features)
    return list(itertools.takewhile(lambda level: level.features <= features, LEVELS))


def join_flags(levels: Iterable[Level]) -> list[str]:
    """Return g++'s flags for levels."""
    return [flag for level in levels for flag in level.flags]


def level_flags(name: str) -> list[str]:
    """Return g++'s flags for a level, by its name, and for all previous levels."""
    names = [level.name for level in LEVELS]
    return join_flags(LEVELS[: names.index(name) + 1])


# The levels of this processor.
levels = processor_levels(name for name, offered in __cpu_features__.items() if offered)


def cpu_features() -> str:
    """Return the name of this processor's highest level.

    Modules are compiled with that level's flags: processors of one level may share a compiledir.
    """
    return levels[-1].name if levels else "x86-64"


def choose_flags() -> list[str]:
    """Return g++'s flags for this processor; warn if it lacks fused multiply-add."""
    if not any(level.name == "fma" for level in levels):
        _logger.warning(
            "This processor, or the virtual machine, offers no AVX2 with fused multiply-add (FMA):"
            " exp, log, log1p, pow, tanh and functions of them (sigmoid, softplus) are not"
            " vectorized, and several times slower. Results are right."
        )
    return join_flags(levels)
