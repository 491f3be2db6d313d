"""Stubs of glibc's libraries: their symbols up to a version, and nothing behind them.

``stubs.py FLOOR TARGET LIBRARY...`` writes one for each library into the directory TARGET. A program
that is linked to them asks for no symbol version above FLOOR: where glibc gave a function a new
version later (exp, log and pow in 2.29), it gets the one before, which every later glibc has too.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

TOOLS = os.environ.get("TOOLS", "")
# What readelf calls a symbol's type, what the assembler calls it, and where it is.
KINDS = {
    "FUNC": ("function", ".text"),
    "IFUNC": ("function", ".text"),
    "OBJECT": ("object", ".data"),
    "TLS": ("tls_object", '.section .tdata, "awT"'),
}


def number(version):
    """``GLIBC_2.2.5`` as numbers; none for a version that is private."""
    parts = version.removeprefix("GLIBC_").split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else None


def stub(library, floor, target):
    """Write the stub of one library."""
    read = [f"{TOOLS}readelf", "--wide", "--dynamic", "--dyn-syms", library]
    told = subprocess.run(read, check=True, capture_output=True, text=True).stdout
    soname = re.search(r"soname: \[(.*)\]", told)[1]
    versions, places, current = defaultdict(set), defaultdict(list), set()
    for line in told.splitlines():
        fields = line.split()
        if len(fields) != 8 or fields[6] == "UND" or "@" not in fields[7]:
            continue
        name, sign, version = re.fullmatch(r"(.+?)(@@?)(.+)", fields[7]).groups()
        if number(version) is None or fields[3] not in KINDS:
            continue
        if sign == "@@":
            current.add(name)
        if number(version) <= floor:
            versions[name].add(version)
            _, address, size, kind, binding, *_ = fields
            places[kind, address].append((name, version, max(int(size, 0), 1), binding))
    newest = {name: max(found, key=number) for name, found in versions.items()}
    lines = ['.section .note.GNU-stack, "", @progbits']
    # Variables of several names, as environ, are one here too: a program that has a copy of it, as
    # the linker makes them, has all of it.
    for (kind, _), found in sorted(places.items()):
        called, section = KINDS[kind]
        lines += [section, ".balign 32"]
        for name, version, size, binding in found:
            label = f'"{name}.{version}"'
            sign = "@@" if name in current and version == newest[name] else "@"
            lines += [
                f".{'weak' if binding == 'WEAK' else 'globl'} {label}",
                f".type {label}, @{called}",
                f".size {label}, {size}",
                f"{label}:",
                f".symver {label}, {name}{sign}{version}",
            ]
        lines.append(f".skip {max(size for _, _, size, _ in found)}")
    defined = {version for found in versions.values() for version in found}
    script = "".join(f"{version} {{}};\n" for version in sorted(defined, key=number))
    Path("stub.s").write_text("\n".join(lines) + "\n", encoding="ascii")
    Path("stub.map").write_text(script, encoding="ascii")
    subprocess.run([f"{TOOLS}as", "stub.s", "-o", "stub.o"], check=True)
    link = ["ld", "-shared", "-soname", soname, "--version-script=stub.map", "stub.o", "-o"]
    subprocess.run([TOOLS + link[0], *link[1:], str(Path(target, soname))], check=True)


if __name__ == "__main__":
    for each in sys.argv[3:]:
        stub(each, number(sys.argv[1]), sys.argv[2])
