#!/bin/bash
set -euo pipefail
# Without --disable-multi-os-directory, a multilib gcc would install the library into lib64.
CFLAGS="-O2" ./configure --prefix="$PREFIX" --disable-static --disable-docs --disable-multi-os-directory
make -j"$CPU_COUNT"
make install
