#!/bin/bash
set -euo pipefail

compiler=$(gcc -dumpfullversion)
if [ "$compiler" != "$PKG_VERSION" ]; then
    echo "gcc on PATH is $compiler, but gcc_version is $PKG_VERSION: set gcc_version to $compiler" >&2
    exit 1
fi

# A library is stored under its soname: nothing links to the other names.
for soname in $LIBRARIES; do
    library=$(gcc -print-file-name="$soname")
    glibc=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    if ! printf '%s\n' "$glibc" "GLIBC_$FLOOR" | sort -CV; then
        echo "$library needs $glibc, but c_stdlib_version is $FLOOR" >&2
        exit 1
    fi
    install -D -m 755 "$library" "$PREFIX/lib/$soname"
done
