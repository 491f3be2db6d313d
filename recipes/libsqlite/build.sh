#!/bin/bash
set -euo pipefail

bash apply-fixes.sh

# Tcl scripts merge SQLite's canonical sources into one C file. Run them with Jim, a Tcl interpreter in
# one C file, so that the host needs no tclsh.
gcc -O1 -DHAVE_REALPATH -o jimsh jimtcl/autosetup/jimsh0.c

# Build without zlib: only the command-line shell uses it, and this build omits the shell.
export ac_cv_prog_TCLSH_CMD="$PWD/jimsh" ac_cv_search_deflate=no
CFLAGS="-O2" ./configure --prefix="$PREFIX" --disable-static --disable-tcl --disable-readline \
    --enable-fts4 --enable-fts5 --enable-rtree
make -j"$CPU_COUNT" libsqlite3.la
make lib_install
install -D -m 644 -t "$PREFIX/include" sqlite3.h src/sqlite3ext.h
install -D -m 644 -t "$PREFIX/lib/pkgconfig" sqlite3.pc
