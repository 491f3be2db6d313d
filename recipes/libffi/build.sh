#!/bin/bash
set -euo pipefail
# Without --disable-multi-os-directory the library goes to lib64 on a host whose gcc is multilib.
CFLAGS="-O2" ./configure --prefix="$PREFIX" --disable-static --disable-docs --disable-multi-os-directory
make -j"$CPU_COUNT"
make install
