#!/bin/bash
set -euo pipefail

# OpenSSL records this date. Set the date of the release, so that it does not depend on the build.
SOURCE_DATE_EPOCH=$(stat -c %Y VERSION.dat)
export SOURCE_DATE_EPOCH

bash apply-fixes.sh

# Trust the host's certificate authorities, because a packaged list would become outdated. Set only
# their directory, not --openssldir=/etc/ssl: OpenSSL would then read the host's openssl.cnf, which may
# contain options that only the distribution's OpenSSL supports. A link does not work either, because
# conda follows absolute links.
sed -i 's|^\(# *define X509_CERT_DIR \).*|\1"/etc/ssl/certs"|' include/internal/cryptlib.h

# Only Python's ssl and hashlib use this library. Leave out features that TLS 1.2, TLS 1.3 and their
# certificates do not need: old and national ciphers and hashes, DTLS, messages and time stamps (CMS,
# CMP, TS), engines, compression and pre-shared keys. Keep md4 in the legacy provider for hashlib.
disabled=(aria bf camellia cast gost idea mdc2 ocb rc2 rc4 seed siv sm2 sm3 sm4 whirlpool ec2m)
disabled+=(cmp cms comp ct dtls engine psk rfc3779 srp srtp ts tests)
# Configure is a perl script. It needs perl's core modules, which Debian's perl-base lacks.
./Configure linux-x86_64 --prefix="$PREFIX" --libdir=lib --openssldir="$PREFIX/ssl" shared \
    "${disabled[@]/#/no-}"

# Build neither the static libraries, which would compile each file a second time, nor the programs.
# An empty list on the command line of make removes these targets.
skipped_targets=(LIBS= INSTALL_LIBS= PROGRAMS= SCRIPTS=)
make -j"$CPU_COUNT" "${skipped_targets[@]}" build_sw
make "${skipped_targets[@]}" install_dev install_modules
