#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
own=$PREFIX/lib/perl
mkdir -p "$PREFIX/bin" "$own" "$PREFIX/etc/conda/activate.d"
cp debian/usr/bin/perl "$PREFIX/bin"
cp "$(find debian -name libcrypt.so.1)" "$own"
cp -r debian/usr/lib/x86_64-linux-gnu/perl{-base,/5.32.1}/. debian/usr/share/perl/5.32.1/. "$own"
# What needs libraries of Debian's.
rm -r "$own"/auto/{Compress,DB_File,GDBM_File,NDBM_File,ODBM_File}
python3 older_libm.py "$PREFIX/bin/perl" "$own/auto/POSIX/POSIX.so"
# perl looks for its modules below /usr, unless told otherwise.
echo "export PERL5LIB=\"$own\"" > "$PREFIX/etc/conda/activate.d/perl.sh"
