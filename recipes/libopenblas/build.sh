#!/bin/bash
set -euo pipefail

options=(
    # The code outside the kernels runs on each x86-64 processor with SSE3. OpenBLAS selects a set of
    # kernels at run time. Other sets would bring no benefit, and each set takes a minute to build.
    # Nehalem's kernels are no faster than Prescott's. Haswell's set contains Zen's kernels. Cooper
    # Lake's and Sapphire Rapids's sets only add bfloat16 to Skylake-X's set, and this project does
    # not use bfloat16.
    DYNAMIC_ARCH=1 TARGET=PRESCOTT
    DYNAMIC_LIST="SANDYBRIDGE HASWELL SKYLAKEX"
    # POSIX threads instead of OpenMP: a forked process can still call BLAS.
    USE_THREAD=1 USE_OPENMP=0 NUM_THREADS=128 NO_AFFINITY=1
    # Omit the long double kernels, which take a quarter of the build time, and LAPACKE.
    NO_EXPRECISION=1 NO_LAPACKE=1 BUILD_LAPACK_DEPRECATED=1
    # Keep OpenBLAS's makefile from adding its own -j.
    MAKE_NB_JOBS=0
)
make=(make -j"$CPU_COUNT" "${options[@]}")

"${make[@]}" libs
# Add the reference LAPACK's routines, except the routines that OpenBLAS implements (getrf, potrf, ...).
# In both archives, an object file has the name of its routine.
mkdir lapack-objects
(cd lapack-objects && ar x "$PREFIX/lib/liblapack.a" && ar t ../libopenblas.a | xargs rm -f)
ar r libopenblas.a lapack-objects/*.o
# Skip the link test, because it calls functions of LAPACK 3.12.
sed -i '/-o linktest /d' exports/Makefile
"${make[@]}" -C exports so
make "${options[@]}" NO_STATIC=1 PREFIX="$PREFIX" install
sed -i "s|=$PREFIX/|=\${pcfiledir}/../../|" "$PREFIX/lib/pkgconfig/openblas.pc"
