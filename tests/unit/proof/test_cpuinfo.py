"""Test the computation of /proc/cpuinfo from the results of the instruction CPUID."""

from __future__ import annotations

import struct
from pathlib import Path

from builder.proof import cpuinfo

# CPUID of QEMU 7.2's Nehalem in user mode: (EAX, EBX, ECX, EDX) by (leaf, subleaf).
BRAND = b"Intel Core i7 9xx (Nehalem Class Core i7)".ljust(48, b"\0")
NEHALEM = {
    (0x0, 0): (0xB, *(struct.unpack("<I", part)[0] for part in (b"Genu", b"ntel", b"ineI"))),
    (0x1, 0): (0x106A3, 0x800, 0x80982201, 0x78BFBFD),
    (0x7, 0): (0, 0, 0, 0),
    (0x80000000, 0): (0x80000008, 0, 0, 0),
    (0x80000001, 0): (0x106A3, 0, 0x1, 0x20100800),
    **{
        (0x80000002 + number, 0): struct.unpack_from("<4I", BRAND, 16 * number)
        for number in range(3)
    },
}


def cpuid(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
    """Return the registers of NEHALEM for a leaf and subleaf; unknown leaves are zero."""
    eax, ebx, ecx, edx = NEHALEM.get((leaf, subleaf), (0, 0, 0, 0))
    return eax, ebx, ecx, edx


def test_cpuinfo_has_an_entry_with_flags_for_each_processor() -> None:
    text = cpuinfo.format_cpuinfo(cpuid, 2)
    assert text.count("model name\t: Intel Core i7 9xx (Nehalem Class Core i7)\n") == 2
    first = dict(line.split("\t: ") for line in text.split("\n\n")[0].splitlines())
    assert first["vendor_id"] == "GenuineIntel"
    assert (first["cpu family"], first["model"], first["stepping"]) == ("6", "26", "3")
    flags = first["flags"].split()
    assert {"sse4_2", "lm", "lahf_lm", "syscall", "nx"} <= {*flags}
    assert not {"avx", "avx2", "bmi1"} & {*flags}


def test_a_leaf_beyond_the_largest_has_no_features() -> None:
    """Leaf 0 contains the number of the largest leaf, here 6; avx2 is a bit of leaf 7."""
    bits = {**NEHALEM, (0x0, 0): (0x6, 0, 0, 0), (0x7, 0): (0, 0x20, 0, 0)}
    flags = [*cpuinfo.list_flags(lambda leaf, subleaf: bits.get((leaf, subleaf), (0, 0, 0, 0)))]
    assert "avx2" not in flags
    assert "sse2" in flags


def test_the_machine_code_reads_the_vendor_of_this_processor() -> None:
    _, *vendor = cpuinfo.load_cpuid()(0, 0)
    name = struct.pack("<3I", vendor[0], vendor[2], vendor[1]).decode("ascii")
    assert f"vendor_id\t: {name}" in Path("/proc/cpuinfo").read_text("utf-8")
