#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
mkdir -p "$PREFIX/bin"
cp debian/usr/bin/tini "$PREFIX/bin"
