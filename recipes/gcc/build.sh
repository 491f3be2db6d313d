#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
# A compiler of Debian finds its parts by paths relative to itself. Keep the layout below /usr.
gcc_lib=lib/gcc/x86_64-linux-gnu/10
mkdir -p "$PREFIX/bin" "$PREFIX/$gcc_lib"

driver() {
    cp "debian/usr/bin/x86_64-linux-gnu-$1-10" "$PREFIX/bin/x86_64-conda-linux-gnu-$1"
}

parts() {
    cp -r "${@/#/debian/usr/$gcc_lib/}" "$PREFIX/$gcc_lib"
}

# Link a library's development name in the compiler's directory, where `-l` searches for it, to the
# library's soname in the environment's lib directory.
library() {
    ln -s "../../../lib$1" "$PREFIX/$gcc_lib/lib${1%.*}"
}

# Print the compiler's built-in specs (its rules for calling its parts) with two changes. First, the
# compiler finds headers in the sysroot, and libraries in the environment and the sysroot, by paths
# relative to itself. Second, it does not split unaligned AVX loads and stores. gcc 10 splits them for
# Sandy Bridge; gcc 11 does not. With the split, additions of arrays took 1.15 to 1.6 times as long.
specs() {
    local compiler=%:getenv\(GCC_EXEC_PREFIX lib=lib/x86_64-linux-gnu sysroot avx_options
    sysroot="--sysroot=$compiler ../../x86_64-linux-gnu/sysroot)"
    avx_options='-mno-avx256-split-unaligned-load -mno-avx256-split-unaligned-store'
    debian/usr/bin/x86_64-linux-gnu-gcc-10 -dumpspecs | sed \
        -e "/^\*self_spec:/{n;s|^|%{!-sysroot=*:$sysroot} %{!march=*:%{!mtune=*:$avx_options}} %{mtune=generic:$avx_options} |}" \
        -e "/^\*link:/{n;s|\$| $sysroot --rpath-link=$compiler ../../lib)|}" \
        -e "/^\*link_libgcc:/{n;s|.*|-L$compiler x86_64-linux-gnu/10) -L$compiler ../../lib) -L=/usr/$lib -L=/$lib|}"
}

case $PKG_NAME in
    libgcc-devel_linux-64)
        parts crt{begin,beginS,beginT,end,endS,fastmath,offloadbegin,offloadend}.o include \
            libgcc{,_eh}.a libgcc_s.so libgomp.spec collect2 liblto_plugin.so.0.0.0
        mv "$PREFIX/$gcc_lib/liblto_plugin.so.0.0.0" "$PREFIX/$gcc_lib/liblto_plugin.so"
        # ar, nm and ranlib need the plugin to read object files of link-time optimization (LTO).
        mkdir "$PREFIX/lib/bfd-plugins"
        ln -s "../${gcc_lib#lib/}/liblto_plugin.so" "$PREFIX/lib/bfd-plugins"
        library gomp.so.1
        specs > "$PREFIX/$gcc_lib/specs"
        for object in {,S,g}crt1.o crt{i,n}.o; do
            ln -s "../../../../x86_64-linux-gnu/sysroot/usr/lib/x86_64-linux-gnu/$object" "$PREFIX/$gcc_lib"
        done
        # Keep the compiler's own libraries in a separate directory: the environment has libraries of the
        # same names.
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
