#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
mkdir -p "$PREFIX/bin" "$PREFIX/lib/patch"
cp debian/usr/bin/patch "$PREFIX/bin"
cp debian/usr/lib/x86_64-linux-gnu/libattr.so.1 "$PREFIX/lib/patch"
