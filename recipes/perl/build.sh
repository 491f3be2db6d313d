#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
modules=$PREFIX/lib/perl
mkdir -p "$PREFIX/bin" "$modules" "$PREFIX/etc/conda/activate.d"
cp debian/usr/bin/perl "$PREFIX/bin"
cp "$(find debian -name libcrypt.so.1)" "$modules"
cp -r debian/usr/lib/x86_64-linux-gnu/perl{-base,/5.32.1}/. debian/usr/share/perl/5.32.1/. "$modules"
# Remove the modules that need further libraries of Debian.
rm -r "$modules"/auto/{Compress,DB_File,GDBM_File,NDBM_File,ODBM_File}
python3 older_libm.py "$PREFIX/bin/perl" "$modules/auto/POSIX/POSIX.so"
# By default perl looks for its modules below /usr.
echo "export PERL5LIB=\"$modules\"" > "$PREFIX/etc/conda/activate.d/perl.sh"
