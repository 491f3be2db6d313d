#!/bin/bash
set -euo pipefail

mkdir -p "$PREFIX/lib"
case $IMPLEMENTATION-$PKG_NAME in
    libopenblas-*) ln -s libopenblas.so.0 "$PREFIX/lib/$PKG_NAME.so.3" ;;
    mkl-libblas)
        gcc -shared -fPIC -O2 -Wall -Werror -Wl,-soname,libblas.so.3 -o "$PREFIX/lib/libblas.so.3" \
            mkl.c -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -Wl,--no-as-needed \
            -lmkl_intel_lp64 -lmkl_gnu_thread -lmkl_core -l:libgomp.so.1
        ;;
    mkl-*) ln -s libblas.so.3 "$PREFIX/lib/$PKG_NAME.so.3" ;;
    *) echo "blas: $IMPLEMENTATION cannot provide $PKG_NAME" >&2; exit 1 ;;
esac
