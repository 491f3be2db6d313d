#!/bin/bash
set -euo pipefail
# The makefile's default CFLAGS add debug information, which contains the path of the build directory.
make -f Makefile-libbz2_so -j"$CPU_COUNT" CFLAGS="-O2 -fPIC -D_FILE_OFFSET_BITS=64"
install -D -m 644 bzlib.h "$PREFIX/include/bzlib.h"
install -D -m 755 "libbz2.so.$PKG_VERSION" "$PREFIX/lib/libbz2.so.$PKG_VERSION"
ln -s "libbz2.so.$PKG_VERSION" "$PREFIX/lib/libbz2.so.1.0"
ln -s "libbz2.so.$PKG_VERSION" "$PREFIX/lib/libbz2.so"
