#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
names=$PREFIX/lib/gpuarray
mkdir -p "$names"
cp -d debian/usr/lib/libgpuarray.so.3* debian/usr/lib/libgpuarray.so "$PREFIX/lib"
cp -r debian/usr/include "$PREFIX"

# Linked to the versioned libraries, and to nothing else: what opens one of these
# finds their functions.
link() {
    gcc -shared -fPIC -O2 -Wall -Werror -o "$names/$1" -L"$PREFIX/lib" -L. \
        -Wl,--no-as-needed,-rpath,"$PREFIX/lib" "${@:2}"
}

# The driver's is not needed to link to it, only its soname.
gcc -shared -Wl,-soname,libcuda.so.1 -o libcuda.so.1 -x c /dev/null
link libcuda.so -x c /dev/null -x none -l:libcuda.so.1
# NVRTC opens its builtins without an RPATH: they are loaded with it.
link libnvrtc.so -x c /dev/null -x none -l:libnvrtc.so.13 -l:libnvrtc-builtins.so.13.0
link libcublas.so cublas.c -l:libcublas.so.13
