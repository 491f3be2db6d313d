#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
# A compiler of Debian looks for assembler and linker in this directory, relative to its own path.
tools=$PREFIX/x86_64-linux-gnu/bin libraries=$PREFIX/lib/binutils
mkdir -p "$PREFIX/bin" "$tools" "$libraries"
for tool in ar as ld nm objcopy objdump ranlib readelf strip; do
    cp "debian/usr/bin/x86_64-linux-gnu-${tool/%ld/ld.bfd}" "$PREFIX/bin/x86_64-conda-linux-gnu-$tool"
    ln -s "../../bin/x86_64-conda-linux-gnu-$tool" "$tools/$tool"
done
cp debian/usr/lib/x86_64-linux-gnu/lib{bfd,opcodes}-*-system.so "$libraries"
for soname in libctf.so.0 libctf-nobfd.so.0 libz.so.1; do
    cp "$(find debian -name "$soname")" "$libraries"
done
