#!/bin/bash
set -euo pipefail

options=(
    # What lets GCC call a vector variant in place of the function.
    -O3 -fno-math-errno -fvect-cost-model=unlimited
    # Twice as fast here as the 256 bits that GCC prefers for most processors.
    -mprefer-vector-width=512
    -fPIC -std=gnu11 -Wall -Wextra -Werror
)
mkdir -p "$PREFIX/lib" "$PREFIX/include"
gcc "${options[@]}" -shared -Wl,-soname,libamdlibm.so -o "$PREFIX/lib/libamdlibm.so" amdlibm.c \
    -Wl,--no-undefined -lmvec -lm
cp amdlibm.h "$PREFIX/include"
