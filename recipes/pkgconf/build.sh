#!/bin/bash
set -euo pipefail

./configure --prefix="$PREFIX" --disable-shared CFLAGS=-O2 \
    --with-system-includedir=/usr/include --with-system-libdir=/lib:/usr/lib
make -j"$CPU_COUNT"
make install
ln -s pkgconf "$PREFIX/bin/pkg-config"
