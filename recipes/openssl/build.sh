#!/bin/bash
set -euo pipefail

# `openssl version -b` tells the date of the release, not that of the build.
SOURCE_DATE_EPOCH=$(stat -c %Y VERSION.dat)
export SOURCE_DATE_EPOCH

# Certificate authorities age faster than this package: trust those of the host. Its openssl.cnf,
# which may hold options that only the distribution's own OpenSSL knows, is not read: hence not
# --openssldir=/etc/ssl. Not by a link either: conda follows an absolute one.
sed -i 's|^\(# *define X509_CERT_DIR \).*|\1"/etc/ssl/certs"|' include/internal/cryptlib.h

# Configure is a perl script; it needs perl's core modules, which Debian's perl-base alone lacks.
./Configure linux-x86_64 --prefix="$PREFIX" --libdir=lib --openssldir="$PREFIX/ssl" shared no-tests
make -j"$CPU_COUNT" build_sw
make install_sw
