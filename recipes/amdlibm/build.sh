#!/bin/bash
set -euo pipefail

options=(
    # These let GCC call a vector variant instead of the scalar function.
    -O3 -fno-math-errno -fvect-cost-model=unlimited
    # With 512 bits, these functions take half the time that they take with 256 bits, which is GCC's
    # default for most processors.
    -mprefer-vector-width=512
    # powf.c computes rounding errors of products, which a contraction to FMA would change.
    -ffp-contract=off
    -fPIC -std=gnu11 -Wall -Wextra -Werror
)
# The order of these files determines the functions' addresses. Keep the order: on an EPYC of Zen 5, a
# jump by 4096 bytes takes 40 cycles.
sources=(amdlibm.c exp_log.c powf.c libmvec.c)
mkdir -p "$PREFIX/lib" "$PREFIX/include"

# Test AMD's functions on this processor, natively and at each level that the library can select.
# Write the functions without failures to proved.s, which aocl.c includes. Write all results to the
# record.
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
    # In releases without a licence file, AMD's headers begin with the licence.
    find aocl -type f \( -iname '*licen[cs]e*' -o -iname '*eula*' -o -name amdlibm.h \) \
        -exec cp -t aocl-licence {} +
    sources=(amdlibm.c aocl.c exp_log.c powf.c libmvec.c)
    survey "$PREFIX/lib/libalm.so"
    # The dynamic linker also searches an RPATH, unlike a RUNPATH, for the dependencies of libalm.so.
    # -Bsymbolic binds calls within libamdlibm.so to its own functions.
    options+=(-DREPLACE_WITH_AMDLIBM
        "-Wl,--disable-new-dtags,-rpath,\$ORIGIN,-Bsymbolic")
fi
gcc "${options[@]}" -c "${sources[@]}"

# List the functions of libmvec that are called and not defined here, and map each name to the name of
# the variant in libmvec's archive.
python3 unpack-debs.py
nm --defined-only "${sources[@]/%.c/.o}" | sed -n 's/.* \(_ZGV.*\)/--defsym=\1=/p' > defined
nm --undefined-only "${sources[@]/%.c/.o}" |
    sed -n 's/.* U \(_ZGVd.*\)/--defsym=\1=\1_avx2/p; s/.* U \(_ZGVe.*\)/--defsym=\1=\1_skx/p' |
    sort -u | grep -vFf defined > called
echo '{ global: amd_*; _ZGV*_amd_*; local: *; };' > exported
gcc "${options[@]}" -shared -Wl,-soname,libamdlibm.so,--version-script=exported,--no-undefined \
    -Wl,@called -o "$PREFIX/lib/libamdlibm.so" "${sources[@]/%.c/.o}" \
    debian/usr/lib/x86_64-linux-gnu/libmvec.a -lm -ldl
cp amdlibm.h "$PREFIX/include"
