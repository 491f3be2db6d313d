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
# In this order: an EPYC of Zen 5 takes 40 cycles for a jump to what is 4096 bytes further on.
sources=(amdlibm.c exp_log.c powf.c libmvec.c)
mkdir -p "$PREFIX/lib" "$PREFIX/include"

# Which of the functions of AMD's library this processor computes right, at each level
# that the library can be made to take it for: proved.s for aocl.c, and a record.
survey() {
    local level record=$PREFIX/share/theano-fast/amdlibm.tsv
    gcc -O2 -DCOUNT='(1 << 18)' survey.c -o survey -ldl -lm
    gcc -O2 -fPIC -shared levels.c -o levels.so
    ./survey "$1" amd > native.tsv
    for level in other zen zen2 zen3 zen4 zen5; do
        LEVEL=$level LD_PRELOAD=$PWD/levels.so ./survey "$1" amd > "level-$level.tsv"
    done
    mkdir -p "${record%/*}"
    awk -F '\t' -f survey.awk native.tsv level-*.tsv > "$record"
    awk -F '\t' '$5 == "" { print ".set proved_" $1 ", 1" }' "$record" > proved.s
}

if [[ -f aocl-libm ]]; then
    mkdir aocl aocl-licence
    tar -xf aocl-libm -C aocl
    library=$(find aocl -name libalm.so -o -name libamdlibm.so | sort | head -n 1)
    install -m 755 "$library" "$PREFIX/lib/libalm.so"
    # AMD's headers begin with the licence in releases that have no file of it.
    find aocl -type f \( -iname '*licen[cs]e*' -o -iname '*eula*' -o -name amdlibm.h \) \
        -exec cp -t aocl-licence {} +
    sources=(amdlibm.c aocl.c exp_log.c powf.c libmvec.c)
    survey "$PREFIX/lib/libalm.so"
    # The search path is AMD's library's too; calls within ours stay in it.
    options+=(-DREPLACE_WITH_AMDLIBM
        "-Wl,--disable-new-dtags,-rpath,\$ORIGIN,-Bsymbolic")
fi
gcc "${options[@]}" -c "${sources[@]}"

# What of libmvec is called and is not our own, by the names of the variants that its archive has.
python3 unpack-debs.py
nm --defined-only "${sources[@]/%.c/.o}" | sed -n 's/.* \(_ZGV.*\)/--defsym=\1=/p' > own
nm --undefined-only "${sources[@]/%.c/.o}" |
    sed -n 's/.* U \(_ZGVd.*\)/--defsym=\1=\1_avx2/p; s/.* U \(_ZGVe.*\)/--defsym=\1=\1_skx/p' |
    sort -u | grep -vFf own > called
echo '{ global: amd_*; _ZGV*_amd_*; local: *; };' > exported
gcc "${options[@]}" -shared -Wl,-soname,libamdlibm.so,--version-script=exported,--no-undefined \
    -Wl,@called -o "$PREFIX/lib/libamdlibm.so" "${sources[@]/%.c/.o}" \
    debian/usr/lib/x86_64-linux-gnu/libmvec.a -lm -ldl
cp amdlibm.h "$PREFIX/include"
