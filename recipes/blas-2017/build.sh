#!/bin/bash
set -euo pipefail

mkdir -p "$PREFIX/lib"
case $IMPLEMENTATION-$PKG_NAME in
    libopenblas-*) ln -s libopenblas.so.0 "$PREFIX/lib/$PKG_NAME.so.3" ;;
    mkl-libblas)
        # The kernel libraries of MKL 2018 call functions of the layer libraries, but do not list
        # them as dependencies (DT_NEEDED). When a layer loads a kernel with dlopen, these symbols
        # are not found. So libblas.so.3 depends on layers and kernels, and loads them together.
        gcc -shared -fPIC -O2 -Wall -Werror -Wl,-soname,libblas.so.3 -o "$PREFIX/lib/libblas.so.3" \
            mkl.c -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -Wl,--no-as-needed \
            -lmkl_intel_lp64 -lmkl_gnu_thread -lmkl_core -l:libgomp.so.1 \
            -lmkl_def -lmkl_avx2 -lmkl_avx512 -lm
        ;;
    mkl-*) ln -s libblas.so.3 "$PREFIX/lib/$PKG_NAME.so.3" ;;
    *) echo "blas-2017: $IMPLEMENTATION cannot provide $PKG_NAME" >&2; exit 1 ;;
esac
