#!/bin/bash
set -euo pipefail
export CFLAGS="-O2"
./configure --prefix="$PREFIX"
make -j"$CPU_COUNT"
make install
