#!/bin/bash
set -euo pipefail

options=(
    # What lets GCC call a vector variant in place of the function.
    -O3 -fno-math-errno -fvect-cost-model=unlimited
    # Twice as fast here as the 256 bits that GCC prefers for most processors.
    -mprefer-vector-width=512
    # powf.c computes what its products' rounding leaves out.
    -ffp-contract=off
    -fPIC -std=gnu11 -Wall -Wextra -Werror
)
sources=(amdlibm.c powf.c)
mkdir -p "$PREFIX/lib" "$PREFIX/include"

if [[ -f aocl-libm ]]; then
    mkdir aocl aocl-licence
    tar -xf aocl-libm -C aocl
    library=$(find aocl -name libalm.so -o -name libamdlibm.so | sort | head -n 1)
    install -m 755 "$library" "$PREFIX/lib/libalm.so"
    # AMD's headers begin with the licence in releases that have no file of it.
    find aocl -type f \( -iname '*licen[cs]e*' -o -iname '*eula*' -o -name amdlibm.h \) \
        -exec cp -t aocl-licence {} +
    sources=(amdlibm.c aocl.c)
    # The search path is AMD's library's too; calls within ours stay in it.
    options+=(-DREPLACE_WITH_AMDLIBM
        "-Wl,--disable-new-dtags,-rpath,\$ORIGIN,-Bsymbolic")
fi
gcc "${options[@]}" -shared -Wl,-soname,libamdlibm.so -o "$PREFIX/lib/libamdlibm.so" \
    "${sources[@]}" -Wl,--no-undefined -lmvec -lm
cp amdlibm.h "$PREFIX/include"
