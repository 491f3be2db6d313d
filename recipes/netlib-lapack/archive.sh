#!/bin/bash
set -euo pipefail

# OpenBLAS's own flags. C programs leave out the lengths of strings that Fortran passes last: where
# a routine ends in a jump to another one, those of the other would be written over what is theirs.
flags=(-O2 -fPIC -frecursive -fno-optimize-sibling-calls -fno-tree-vectorize)
cp make.inc.example make.inc
make=(make BUILD_DEPRECATED=Yes CFLAGS="${flags[*]}" FFLAGS="${flags[*]}" FFLAGS_NOOPT="${flags[*]} -O0")

# gfortran reads dozens of routines at once: started for each, it takes twice as long. Apart from
# them are those of which OpenBLAS has its own, and takes these out of the archive by name.
own='[cdsz](gesv|getf2|getrf|getrs|laswp|lauu2|lauum|potf2|potrf|spmv|spr|symv|syr|trti2|trtri|trtrs)'
"${make[@]}" --dry-run lapacklib > commands
sed -n 's|.* -c -o \([^ ]*\.o\) .*|\1|p' commands > objects
sed -n "s|^gfortran ${flags[*]} *-c -o \([a-z0-9_]*\)\.o \1\.f$|\1|p" commands | grep -vxE "$own" > routines
sed 's/$/.o/' routines | grep -vxFf - objects > apart

mkdir together
split --number=r/32 routines together/
cd SRC
for list in ../together/*; do
    # sed ends the last line of each.
    sed 's/$/.f/' "$list" | xargs sed '/^\*/d' > "$list.f"
done
printf '%s\n' ../together/*.f |
    xargs -P "$CPU_COUNT" -I{} gfortran "${flags[@]}" -fallow-argument-mismatch -c {} -o {}.o
xargs "${make[@]}" -j"$CPU_COUNT" < ../apart
mkdir -p "$PREFIX/lib"
xargs ar cr "$PREFIX/lib/liblapack.a" ../together/*.o < ../apart
