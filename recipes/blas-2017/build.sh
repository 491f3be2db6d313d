#!/bin/bash
set -euo pipefail

mkdir -p "$PREFIX/lib"
case $IMPLEMENTATION-$PKG_NAME in
    libopenblas-*) ln -s libopenblas.so.0 "$PREFIX/lib/$PKG_NAME.so.3" ;;
    mkl-libblas)
        # The kernels of 2018 do not name the layers that they call: loaded by these, as a program
        # asks for them, they find none. Here they are loaded together.
        gcc -shared -fPIC -O2 -Wall -Werror -Wl,-soname,libblas.so.3 -o "$PREFIX/lib/libblas.so.3" \
            mkl.c -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -Wl,--no-as-needed \
            -lmkl_intel_lp64 -lmkl_gnu_thread -lmkl_core -l:libgomp.so.1 \
            -lmkl_def -lmkl_avx2 -lmkl_avx512 -lm
        ;;
    mkl-*) ln -s libblas.so.3 "$PREFIX/lib/$PKG_NAME.so.3" ;;
    *) echo "no $PKG_NAME is known of $IMPLEMENTATION" >&2; exit 1 ;;
esac
