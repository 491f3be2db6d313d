#!/bin/bash
set -euo pipefail

options=(
    # The code outside the kernels runs on each x86-64 processor with SSE3. OpenBLAS selects the
    # kernels at run time. Other kernel sets would bring no benefit and take a minute each to
    # build: Nehalem's are no faster than Prescott's, Zen's are a part of Haswell's, and Cooper
    # Lake's and Sapphire Rapids's are Skylake-X's plus bfloat16, which this project does not use.
    DYNAMIC_ARCH=1 TARGET=PRESCOTT
    DYNAMIC_LIST="SANDYBRIDGE HASWELL SKYLAKEX"
    # POSIX threads instead of OpenMP: a forked process can still call BLAS.
    USE_THREAD=1 USE_OPENMP=0 NUM_THREADS=128 NO_AFFINITY=1
    # Leave out the long double kernels (a quarter of the build time) and LAPACKE.
    NO_EXPRECISION=1 NO_LAPACKE=1 BUILD_LAPACK_DEPRECATED=1
    # Keep OpenBLAS's makefile from adding its own -j.
    MAKE_NB_JOBS=0
)
make=(make -j"$CPU_COUNT" "${options[@]}")

"${make[@]}" libs
# Add the routines of the reference LAPACK, except those that OpenBLAS implements itself (getrf,
# potrf, ...). These are archive members of the same name in both libraries.
mkdir lapack-objects
(cd lapack-objects && ar x "$PREFIX/lib/liblapack.a" && ar t ../libopenblas.a | xargs rm -f)
ar r libopenblas.a lapack-objects/*.o
# Skip the link test: it needs functions of LAPACK 3.12.
sed -i '/-o linktest /d' exports/Makefile
"${make[@]}" -C exports so
make "${options[@]}" NO_STATIC=1 PREFIX="$PREFIX" install
sed -i "s|=$PREFIX/|=\${pcfiledir}/../../|" "$PREFIX/lib/pkgconfig/openblas.pc"
