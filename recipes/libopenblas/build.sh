#!/bin/bash
set -euo pipefail

options=(
    # The code outside the kernels runs on any x86-64 processor with SSE3; the
    # kernels are chosen at run time. Nehalem's are no faster than Prescott's,
    # Zen is Haswell's with some kernels less, Cooper Lake and Sapphire Rapids
    # are Skylake-X's plus bfloat16, which nothing here uses: each would cost a
    # minute and change nothing.
    DYNAMIC_ARCH=1 TARGET=PRESCOTT
    DYNAMIC_LIST="SANDYBRIDGE HASWELL SKYLAKEX"
    # POSIX threads, not OpenMP: a forked process may go on calling BLAS.
    USE_THREAD=1 USE_OPENMP=0 NUM_THREADS=128 NO_AFFINITY=1
    # Neither long double kernels (a quarter of the build) nor LAPACKE.
    NO_EXPRECISION=1 NO_LAPACKE=1 BUILD_LAPACK_DEPRECATED=1
    # No -j of its own.
    MAKE_NB_JOBS=0
)
make=(make -j"$CPU_COUNT" "${options[@]}")

"${make[@]}" libs
# The reference LAPACK, but for what OpenBLAS has its own routine of (getrf, potrf, ...), which is an
# archive member of the same name.
mkdir lapack-objects
(cd lapack-objects && ar x "$PREFIX/lib/liblapack.a" && ar t ../libopenblas.a | xargs rm -f)
ar r libopenblas.a lapack-objects/*.o
# The link test wants functions that came with LAPACK 3.12.
sed -i '/-o linktest /d' exports/Makefile
"${make[@]}" -C exports so
make "${options[@]}" NO_STATIC=1 PREFIX="$PREFIX" install
sed -i "s|=$PREFIX/|=\${pcfiledir}/../../|" "$PREFIX/lib/pkgconfig/openblas.pc"
