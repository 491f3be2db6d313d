#!/bin/bash
set -euo pipefail

# OpenBLAS's own flags. C programs leave out the lengths of strings that Fortran passes last: where
# a routine ends in a jump to another one, those of the other would be written over what is theirs.
flags="-O2 -fPIC -frecursive -fno-optimize-sibling-calls -fno-tree-vectorize"
cp make.inc.example make.inc
make -j"$CPU_COUNT" lapacklib BUILD_DEPRECATED=Yes LAPACKLIB="$SRC_DIR/liblapack.a" \
    CFLAGS="$flags" FFLAGS="$flags" FFLAGS_NOOPT="$flags -O0"
install -D -m 644 -t "$PREFIX/lib" liblapack.a
