#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
mkdir -p "$PREFIX/lib"
# Install each library under its soname only: no binary refers to its other names.
for soname in $LIBRARIES; do
    cp "$(find debian -name "$soname")" "$PREFIX/lib"
done
if [ "$PKG_NAME" = libgfortran ]; then
    python3 older_libm.py "$PREFIX/lib/libgfortran.so.5"
fi
