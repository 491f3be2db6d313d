#!/bin/bash
set -euo pipefail
bash apply-fixes.sh
# Omit the scripts (xzgrep and others): they are under the GPL. The other files are in the public domain.
CFLAGS="-O2" ./configure --prefix="$PREFIX" --disable-static --disable-nls --disable-doc \
    --disable-scripts --disable-xzdec --disable-lzmadec --disable-lzmainfo
make -j"$CPU_COUNT"
make install
