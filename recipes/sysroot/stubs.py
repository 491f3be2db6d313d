"""Make stub libraries of glibc, which define glibc's symbols up to a version and contain no code.

``stubs.py FLOOR TARGET LIBRARY...`` writes a stub of each library into the directory TARGET. A program
that is linked to the stubs needs no symbol version above FLOOR. If glibc has a newer version of a
function, as of exp, log and pow since 2.29, the program uses the newest version up to FLOOR. Later
releases of glibc still contain this version.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# The prefix of the names of readelf, as and ld.
TOOLS = os.environ.get("TOOLS", "")
# By readelf's name of a symbol type: the assembler's name of the type, and the section of such symbols.
TYPES = {
    "FUNC": ("function", ".text"),
    "IFUNC": ("function", ".text"),
    "OBJECT": ("object", ".data"),
    "TLS": ("tls_object", '.section .tdata, "awT"'),
}


def parse_version(version):
    """Return ``GLIBC_2.2.5`` as a tuple of numbers, or None for a private version."""
    parts = version.removeprefix("GLIBC_").split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else None


def make_stub(library, floor, target):
    """Write the stub of a library into the directory ``target``, under the library's soname."""
    command = [f"{TOOLS}readelf", "--wide", "--dynamic", "--dyn-syms", library]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    soname = re.search(r"soname: \[(.*)\]", output)[1]
    # Versions by symbol; symbols by type and address; symbols that have a default version ("@@").
    versions, symbols, defaults = defaultdict(set), defaultdict(list), set()
    for line in output.splitlines():
        fields = line.split()
        if len(fields) != 8 or fields[6] == "UND" or "@" not in fields[7]:
            continue
        name, sign, version = re.fullmatch(r"(.+?)(@@?)(.+)", fields[7]).groups()
        if parse_version(version) is None or fields[3] not in TYPES:
            continue
        if sign == "@@":
            defaults.add(name)
        if parse_version(version) <= floor:
            versions[name].add(version)
            _, address, size, kind, binding, *_ = fields
            symbols[kind, address].append((name, version, max(int(size, 0), 1), binding))
    newest = {name: max(names, key=parse_version) for name, names in versions.items()}
    lines = ['.section .note.GNU-stack, "", @progbits']
    # Define all symbols of one address at one address. A variable such as environ has several names. The
    # linker copies the variable into a program, and all its names must refer to the copy.
    for (kind, _), aliases in sorted(symbols.items()):
        assembler_type, section = TYPES[kind]
        lines += [section, ".balign 32"]
        for name, version, size, binding in aliases:
            label = f'"{name}.{version}"'
            sign = "@@" if name in defaults and version == newest[name] else "@"
            lines += [
                f".{'weak' if binding == 'WEAK' else 'globl'} {label}",
                f".type {label}, @{assembler_type}",
                f".size {label}, {size}",
                f"{label}:",
                f".symver {label}, {name}{sign}{version}",
            ]
        lines.append(f".skip {max(size for _, _, size, _ in aliases)}")
    defined = {version for names in versions.values() for version in names}
    script = "".join(f"{version} {{}};\n" for version in sorted(defined, key=parse_version))
    Path("stub.s").write_text("\n".join(lines) + "\n", encoding="ascii")
    Path("stub.map").write_text(script, encoding="ascii")
    subprocess.run([f"{TOOLS}as", "stub.s", "-o", "stub.o"], check=True)
    link = ["ld", "-shared", "-soname", soname, "--version-script=stub.map", "stub.o", "-o"]
    subprocess.run([TOOLS + link[0], *link[1:], str(Path(target, soname))], check=True)


if __name__ == "__main__":
    for library in sys.argv[3:]:
        make_stub(library, parse_version(sys.argv[1]), sys.argv[2])
