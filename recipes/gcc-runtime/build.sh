#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
mkdir -p "$PREFIX/lib"
# A library is stored under its soname: nothing links to the other names.
for soname in $LIBRARIES; do
    cp "$(find debian -name "$soname")" "$PREFIX/lib"
done
if [ "$PKG_NAME" = libgfortran ]; then
    python3 older_libm.py "$PREFIX/lib/libgfortran.so.5"
fi
