#!/bin/bash
set -euo pipefail

compiler=$(gcc -dumpfullversion)
if [ "$compiler" != "$PKG_VERSION" ]; then
    echo "gcc on PATH is $compiler, but gcc_version is $PKG_VERSION: set gcc_version to $compiler" >&2
    exit 1
fi

# A library is stored under its soname: nothing links to the other names.
for soname in $LIBRARIES; do
    install -D -m 755 "$(gcc -print-file-name="$soname")" "$PREFIX/lib/$soname"
done
