#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
sysroot=$PREFIX/x86_64-linux-gnu/sysroot
lib=lib/x86_64-linux-gnu
mkdir -p "$sysroot/usr/$lib" "$sysroot/$lib" "$sysroot/lib64"
cp -r debian/usr/include "$sysroot/usr"

# The linker adds these start files and static functions to each program. They call only old versions of
# the libraries' functions.
cp debian/usr/$lib/{,S,g}crt1.o debian/usr/$lib/crt{i,n}.o debian/usr/$lib/libc_nonshared.a "$sysroot/usr/$lib"
cp debian/usr/$lib/lib{c,m}.so "$sysroot/usr/$lib"
sonames=(c.so.6 m.so.6 mvec.so.1 pthread.so.0 dl.so.2 rt.so.1 util.so.1 resolv.so.2)
unset LD_RUN_PATH
TOOLS=x86_64-conda-linux-gnu- python3 stubs.py "$FLOOR" "$sysroot/$lib" \
    "${sonames[@]/#/debian/$lib/lib}" debian/$lib/ld-linux-x86-64.so.2
mv "$sysroot/$lib/ld-linux-x86-64.so.2" "$sysroot/lib64"
for soname in "${sonames[@]:3}"; do
    ln -s "../../../$lib/lib$soname" "$sysroot/usr/$lib/lib${soname%.*}"
done
