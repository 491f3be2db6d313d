#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
names=$PREFIX/lib/gpuarray
mkdir -p "$names"
cp -d debian/usr/lib/libgpuarray.so.3* debian/usr/lib/libgpuarray.so "$PREFIX/lib"
cp -r debian/usr/include "$PREFIX"

# link NAME ARGUMENT...: build the library NAME, which depends on a versioned library of CUDA. A
# program that loads NAME with dlopen also finds the functions of the versioned library.
link() {
    gcc -shared -fPIC -O2 -Wall -Werror -o "$names/$1" -L"$PREFIX/lib" -L. \
        -Wl,--no-as-needed,-rpath,"$PREFIX/lib" "${@:2}"
}

# Link with an empty library that has the driver's soname: the build machine needs no driver.
gcc -shared -Wl,-soname,libcuda.so.1 -o libcuda.so.1 -x c /dev/null
link libcuda.so cuda.c -l:libcuda.so.1 -ldl
# NVRTC loads its builtins library with dlopen, but has no RPATH. Load the builtins with NVRTC.
python3 compile_kernels.py "$PREFIX/lib/libgpuarray.so.3" \
    "$PREFIX"/lib/libnvrtc-builtins.so.13.0 "$PREFIX/lib/libnvrtc.so.13" > kernels.h
link libnvrtc.so nvrtc.c -pthread -ldl -l:libnvrtc.so.13 -l:libnvrtc-builtins.so.13.0
link libcublas.so cublas.c -l:libcublas.so.13
