#!/bin/bash
set -euo pipefail

# OpenSSL tells the date of the release, not that of the build.
SOURCE_DATE_EPOCH=$(stat -c %Y VERSION.dat)
export SOURCE_DATE_EPOCH

bash apply-fixes.sh

# Certificate authorities age faster than this package: trust those of the host. Its openssl.cnf,
# which may hold options that only the distribution's own OpenSSL knows, is not read: hence not
# --openssldir=/etc/ssl. Not by a link either: conda follows an absolute one.
sed -i 's|^\(# *define X509_CERT_DIR \).*|\1"/etc/ssl/certs"|' include/internal/cryptlib.h

# Python's ssl and hashlib are what uses this. Without what TLS 1.2 and 1.3 and their certificates
# do without: old ciphers and hashes (md4, in the legacy provider, is hashlib's), those of some
# countries, DTLS, messages and time stamps (CMS, CMP, TS), engines, compression, keys agreed before.
without=(aria bf camellia cast gost idea mdc2 ocb rc2 rc4 seed siv sm2 sm3 sm4 whirlpool ec2m)
without+=(cmp cms comp ct dtls engine psk rfc3779 srp srtp ts tests)
# Configure is a perl script; it needs perl's core modules, which Debian's perl-base alone lacks.
./Configure linux-x86_64 --prefix="$PREFIX" --libdir=lib --openssldir="$PREFIX/ssl" shared \
    "${without[@]/#/no-}"

# Not for the static libraries, of which every file would be compiled a second time, nor the
# programs: emptied on the command line, these lists are what is made beyond what others need.
only=(LIBS= INSTALL_LIBS= PROGRAMS= SCRIPTS=)
make -j"$CPU_COUNT" "${only[@]}" build_sw
make "${only[@]}" install_dev install_modules
