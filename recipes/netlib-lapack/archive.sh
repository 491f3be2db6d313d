#!/bin/bash
set -euo pipefail

# OpenBLAS's flags. -fno-optimize-sibling-calls is necessary: Fortran passes the lengths of strings as
# hidden last arguments, and C programs omit them. If a routine called another by a jump (a sibling
# call), it would write the hidden lengths over the stack of the C program.
flags=(-O2 -fPIC -frecursive -fno-optimize-sibling-calls -fno-tree-vectorize)
cp make.inc.example make.inc
make=(make BUILD_DEPRECATED=Yes CFLAGS="${flags[*]}" FFLAGS="${flags[*]}" FFLAGS_NOOPT="${flags[*]} -O0")

# Compile dozens of routines in each run of gfortran: with one run for each routine, the build takes
# twice as long. Compile separately the routines that OpenBLAS implements itself, because the
# recipe libopenblas removes them from the archive by their member names.
openblas_routines='[cdsz](gesv|getf2|getrf|getrs|laswp|lauu2|lauum|potf2|potrf|spmv|spr|symv|syr|trti2|trtri|trtrs)'
"${make[@]}" --dry-run lapacklib > commands
sed -n 's|.* -c -o \([^ ]*\.o\) .*|\1|p' commands > objects
sed -n "s|^gfortran ${flags[*]} *-c -o \([a-z0-9_]*\)\.o \1\.f$|\1|p" commands | grep -vxE "$openblas_routines" > routines
sed 's/$/.o/' routines | grep -vxFf - objects > separate

mkdir batches
split --number=r/32 routines batches/
cd SRC
for batch in ../batches/*; do
    # sed adds a missing newline at the end of each file, and drops comment lines.
    sed 's/$/.f/' "$batch" | xargs sed '/^\*/d' > "$batch.f"
done
printf '%s\n' ../batches/*.f |
    xargs -P "$CPU_COUNT" -I{} gfortran "${flags[@]}" -fallow-argument-mismatch -c {} -o {}.o
xargs "${make[@]}" -j"$CPU_COUNT" < ../separate
mkdir -p "$PREFIX/lib"
xargs ar cr "$PREFIX/lib/liblapack.a" ../batches/*.o < ../separate
