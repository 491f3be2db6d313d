#!/bin/bash
set -euo pipefail

bash apply-fixes.sh

# SQLite's canonical sources are turned into one C file by Tcl scripts. Jim,
# a Tcl in one C file, runs them, so that the host need not have tclsh.
gcc -O1 -DHAVE_REALPATH -o jimsh jimtcl/autosetup/jimsh0.c

# zlib would serve only the command line shell, which is not built.
export ac_cv_prog_TCLSH_CMD="$PWD/jimsh" ac_cv_search_deflate=no
CFLAGS="-O2" ./configure --prefix="$PREFIX" --disable-static --disable-tcl --disable-readline \
    --enable-fts4 --enable-fts5 --enable-rtree
make -j"$CPU_COUNT" libsqlite3.la
make lib_install
install -D -m 644 -t "$PREFIX/include" sqlite3.h src/sqlite3ext.h
install -D -m 644 -t "$PREFIX/lib/pkgconfig" sqlite3.pc
