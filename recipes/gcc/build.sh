#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
# A compiler of Debian's finds what it needs from its own place, as it does below /usr.
own=lib/gcc/x86_64-linux-gnu/10
mkdir -p "$PREFIX/bin" "$PREFIX/$own"

driver() {
    cp "debian/usr/bin/x86_64-linux-gnu-$1-10" "$PREFIX/bin/x86_64-conda-linux-gnu-$1"
}

parts() {
    cp -r "${@/#/debian/usr/$own/}" "$PREFIX/$own"
}

# As `-l` looks for it, beside the compiler, and below its soname in the environment.
library() {
    ln -s "../../../lib$1" "$PREFIX/$own/lib${1%.*}"
}

# The compiler's own table of how it calls its parts, but for where these look: headers in the
# sysroot, libraries in the environment and in the sysroot, by their places from the compiler's own;
# and for AVX, of which it loads and stores halves for Sandy Bridge's sake, as gcc 11 does no more:
# additions of arrays took 1.15 to 1.6 times as long.
specs() {
    local near=%:getenv\(GCC_EXEC_PREFIX lib=lib/x86_64-linux-gnu sysroot whole
    sysroot="--sysroot=$near ../../x86_64-linux-gnu/sysroot)"
    whole='-mno-avx256-split-unaligned-load -mno-avx256-split-unaligned-store'
    debian/usr/bin/x86_64-linux-gnu-gcc-10 -dumpspecs | sed \
        -e "/^\*self_spec:/{n;s|^|%{!-sysroot=*:$sysroot} %{!march=*:%{!mtune=*:$whole}} %{mtune=generic:$whole} |}" \
        -e "/^\*link:/{n;s|\$| $sysroot --rpath-link=$near ../../lib)|}" \
        -e "/^\*link_libgcc:/{n;s|.*|-L$near x86_64-linux-gnu/10) -L$near ../../lib) -L=/usr/$lib -L=/$lib|}"
}

case $PKG_NAME in
    libgcc-devel_linux-64)
        parts crt{begin,beginS,beginT,end,endS,fastmath,offloadbegin,offloadend}.o include \
            libgcc{,_eh}.a libgcc_s.so libgomp.spec collect2 liblto_plugin.so.0.0.0
        mv "$PREFIX/$own/liblto_plugin.so.0.0.0" "$PREFIX/$own/liblto_plugin.so"
        # With it, ar, nm and ranlib read what LTO compiles.
        mkdir "$PREFIX/lib/bfd-plugins"
        ln -s "../${own#lib/}/liblto_plugin.so" "$PREFIX/lib/bfd-plugins"
        library gomp.so.1
        specs > "$PREFIX/$own/specs"
        for object in {,S,g}crt1.o crt{i,n}.o; do
            ln -s "../../../../x86_64-linux-gnu/sysroot/usr/lib/x86_64-linux-gnu/$object" "$PREFIX/$own"
        done
        # Not the host's, nor the environment's of the same name.
        mkdir "$PREFIX/lib/gcc/lib"
        for soname in libgmp.so.10 libisl.so.23 libmpc.so.3 libmpfr.so.6 libz.so.1 libzstd.so.1; do
            cp "$(find debian -name "$soname")" "$PREFIX/lib/gcc/lib"
        done
        ;;
    gcc_impl_linux-64)
        driver gcc
        ln -s x86_64-conda-linux-gnu-gcc "$PREFIX/bin/x86_64-conda-linux-gnu-cc"
        parts cc1 lto1 lto-wrapper
        ;;
    gxx_impl_linux-64)
        driver g++
        ln -s x86_64-conda-linux-gnu-g++ "$PREFIX/bin/x86_64-conda-linux-gnu-c++"
        parts cc1plus
        library stdc++.so.6
        mkdir -p "$PREFIX"/include/x86_64-linux-gnu
        cp -r debian/usr/include/c++ "$PREFIX/include"
        cp -r debian/usr/include/x86_64-linux-gnu/c++ "$PREFIX/include/x86_64-linux-gnu"
        ;;
    gfortran_impl_linux-64)
        driver gfortran
        parts f951 finclude include libgfortran.spec libcaf_single.a
        library gfortran.so.5
        library quadmath.so.0
        ;;
esac
