"""Print the content of /proc/cpuinfo, in Linux's format, from the results of the CPUID instruction.

QEMU's user mode emulates CPUID, but programs still read the host's /proc/cpuinfo. As a program in
the emulator, this module prints the file's content for the emulated processor. It imports only
Python's standard library, because the program starts without other packages.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Iterator

Cpuid = Callable[[int, int], tuple[int, int, int, int]]
EAX, EBX, ECX, EDX = 0, 1, 2, 3
# void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) of the System V ABI.
MACHINE_CODE = bytes.fromhex(
    "53"  # push rbx
    "89f8 89f1 4989d0"  # mov eax, edi; mov ecx, esi; mov r8, rdx
    "0fa2"  # cpuid
    "418900 41895804 41894808 4189500c"  # mov [r8], eax; then ebx, ecx and edx after it
    "5b c3"  # pop rbx; ret
)
# Names as in Linux's arch/x86/include/asm/cpufeatures.h, by leaf, subleaf and register. The first
# name is bit 0; "-" is a bit that Linux does not show.
FEATURES: tuple[tuple[int, int, int, str], ...] = (
    (
        *(0x1, 0, EDX),
        "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat pse36 pn clflush - dts"
        " acpi mmx fxsr sse sse2 ss ht tm ia64 pbe",
    ),
    (
        *(0x80000001, 0, EDX),
        "- - - - - - - - - - - syscall - - - - - - - mp nx - mmxext - - fxsr_opt pdpe1gb rdtscp -"
        " lm 3dnowext 3dnow",
    ),
    (
        *(0x1, 0, ECX),
        "pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid sdbg fma cx16 xtpr pdcm -"
        " pcid dca sse4_1 sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave - avx f16c rdrand"
        " hypervisor",
    ),
    (
        *(0x80000001, 0, ECX),
        "lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop"
        " skinit wdt - lwp fma4 tce - nodeid_msr - tbm topoext perfctr_core perfctr_nb",
    ),
    (
        *(0x7, 0, EBX),
        "fsgsbase tsc_adjust sgx bmi1 hle avx2 - smep bmi2 erms invpcid rtm cqm - mpx rdt_a avx512f"
        " avx512dq rdseed adx smap avx512ifma - clflushopt clwb intel_pt avx512pf avx512er avx512cd"
        " sha_ni avx512bw avx512vl",
    ),
    (0xD, 1, EAX, "xsaveopt xsavec xgetbv1 xsaves"),
    (0x7, 1, EAX, "- - - - avx_vnni avx512_bf16"),
    (
        *(0x7, 0, ECX),
        "- avx512vbmi umip pku ospke waitpkg avx512_vbmi2 - gfni vaes vpclmulqdq avx512_vnni"
        " avx512_bitalg tme avx512_vpopcntdq - la57 - - - - - rdpid",
    ),
    (
        *(0x7, 0, EDX),
        "- - avx512_4vnniw avx512_4fmaps fsrm - - - avx512_vp2intersect - - - - - serialize - - - -"
        " - - - amx_bf16 avx512_fp16 amx_tile amx_int8",
    ),
)


def format_cpuinfo(cpuid: Cpuid, processors: int) -> str:
    """Format the content of /proc/cpuinfo.

    Args:
        cpuid: a function that executes CPUID for a leaf and a subleaf, and returns EAX, EBX, ECX
            and EDX.
        processors: the number of processors of the machine.
    """
    _, *vendor = cpuid(0, 0)
    signature = cpuid(1, 0)[EAX]
    family, model = signature >> 8 & 0xF, signature >> 4 & 0xF
    # The extended fields apply to these families only: CPUID in Intel's and AMD's manuals.
    if family in (0x6, 0xF):
        model += (signature >> 16 & 0xF) << 4
    if family == 0xF:
        family += signature >> 20 & 0xFF
    brand = b"".join(struct.pack("<4I", *cpuid(leaf, 0)) for leaf in range(0x80000002, 0x80000005))
    facts = {
        "vendor_id": struct.pack("<3I", vendor[0], vendor[2], vendor[1]).decode("ascii"),
        "cpu family": family,
        "model": model,
        "model name": brand.partition(b"\0")[0].decode("ascii").strip(),
        "stepping": signature & 0xF,
        "flags": " ".join(list_flags(cpuid)),
    }
    blocks = [{"processor": number, **facts} for number in range(processors)]
    return "".join(
        "".join(f"{key}\t: {value}\n" for key, value in block.items()) + "\n" for block in blocks
    )


def list_flags(cpuid: Cpuid) -> Iterator[str]:
    """Yield Linux's names of the features in CPUID."""
    largest = {start: cpuid(start, 0)[EAX] for start in (0, 0x80000000)}
    for leaf, subleaf, register, names in FEATURES:
        if leaf > largest[leaf & 0x80000000] or subleaf > find_last_subleaf(cpuid, leaf):
            continue
        bits = cpuid(leaf, subleaf)[register]
        yield from (
            name for bit, name in enumerate(names.split()) if name != "-" and bits >> bit & 1
        )


def find_last_subleaf(cpuid: Cpuid, leaf: int) -> int:
    """Return the largest subleaf in FEATURES that a leaf has.

    Leaf 7 reports its largest subleaf. For other leaves, FEATURES contains only subleaves 0 and 1.
    """
    return cpuid(leaf, 0)[EAX] if leaf == 0x7 else 1


def load_cpuid() -> Cpuid:
    """Return a function that executes CPUID on this processor."""
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(MACHINE_CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
    instruction = prototype(address)

    def cpuid(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
        registers = (ctypes.c_uint32 * 4)()
        instruction(leaf, subleaf, ctypes.addressof(registers))
        eax, ebx, ecx, edx = registers
        return eax, ebx, ecx, edx

    # Keep a reference to the machine code, so that its memory is not freed.
    cpuid.__dict__["memory"] = memory
    return cpuid


if __name__ == "__main__":
    print(format_cpuinfo(load_cpuid(), os.cpu_count() or 1), end="")
