"""Choice of g++'s flags for a processor, by the instructions that it offers.

The name of a processor is not enough to choose flags. g++ 10 mistakes newer processors for older
processors, such as a Zen 4 for a Zen 2 with AVX-512, and tunes for the older processor. A virtual
machine or an emulator can hide instructions. Therefore this module ignores the name: each level of
instructions adds flags.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from typing import NamedTuple

# NumPy reads two sources: CPUID has the instructions of the processor, and XGETBV has the registers
# that the operating system saves. Do not read /proc/cpuinfo: under QEMU's emulation, it describes
# the host.
from numpy.core._multiarray_umath import __cpu_features__

_logger = logging.getLogger(__name__)


class Level(NamedTuple):
    """The instructions that a level adds to the previous level.

    Attributes:
        name: the name of the level.
        features: NumPy's names of the instructions.
        flags: g++'s flags for the instructions.
    """

    name: str
    features: frozenset[str]
    flags: tuple[str, ...]


# A processor that has a level has all previous levels too. The flags contain neither -march= nor
# -mtune=, so g++ tunes for generic x86-64: with -mtune=znver1 or -mtune=znver2, g++ does not
# vectorize some loops.
LEVELS = (
    Level("sse4.2", frozenset({"SSSE3", "SSE41", "POPCNT", "SSE42"}), ("-msse4.2", "-mpopcnt")),
    Level("avx", frozenset({"AVX"}), ("-mavx",)),
    Level("avx2", frozenset({"AVX2"}), ("-mavx2",)),
    # This level comes after avx2, because libtheano_functions uses FMA and AVX2. Piledriver, which
    # has FMA without AVX2, does not have the level.
    Level("fma", frozenset({"FMA3"}), ("-mfma",)),
    Level(
        "avx512",
        # AVX512_SKX stands for AVX512F, AVX512CD, AVX512BW, AVX512DQ and AVX512VL.
        frozenset({"AVX512F", "AVX512_SKX"}),
        (
            *("-mavx512f", "-mavx512cd", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
            "-mprefer-vector-width=512",
        ),
    ),
)
# Flags with which g++ itself chooses the instructions. Its choice can differ between the nodes of a
# cluster.
NATIVE = frozenset({"-march=native", "--march=native", "-mtune=native"})


def find_levels(features: Iterable[str]) -> list[Level]:
    """Return the levels that a processor has, from NumPy's names of its features."""
    features = frozenset(features)
    return list(itertools.takewhile(lambda level: level.features <= features, LEVELS))


def join_flags(levels: Iterable[Level]) -> list[str]:
    """Return g++'s flags for levels."""
    return [flag for level in levels for flag in level.flags]


def list_level_flags(name: str) -> list[str]:
    """Return g++'s flags for the level with this name and for all previous levels."""
    names = [level.name for level in LEVELS]
    return join_flags(LEVELS[: names.index(name) + 1])


# The levels of this processor.
levels = find_levels(name for name, offered in __cpu_features__.items() if offered)


def cpu_features() -> str:
    """Return the name of this processor's highest level, or "x86-64" if it has none.

    The path of the compiledir contains the name. Processors with the same highest level can share a
    compiledir, because they run modules that are compiled with the same flags.
    """
    return levels[-1].name if levels else "x86-64"


def choose_flags() -> list[str]:
    """Return g++'s flags for this processor; warn if it lacks fused multiply-add."""
    if not any(level.name == "fma" for level in levels):
        _logger.warning(
            "This processor, or the virtual machine, offers no AVX2 with fused multiply-add (FMA):"
            " exp, log, log1p, pow, tanh and functions of them (sigmoid, softplus) are not"
            " vectorized, and are several times slower. The results are correct."
        )
    return join_flags(levels)
