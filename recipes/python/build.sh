#!/bin/bash
set -euo pipefail

# sys.version contains this date. Set the date of the release, so that it does not depend on the build.
SOURCE_DATE_EPOCH=$(stat -c %Y README.rst)
export SOURCE_DATE_EPOCH

# This script also builds the interpreter of stock Theano, which is the unpatched release.
expat=()
if [ -f "$RECIPE_DIR/fixes" ]; then
    bash apply-fixes.sh
    # CPython's copy of expat has no security fixes; the package libexpat has them.
    expat=(--with-system-expat)
    # The patch for CVE-2026-4224 requires that pyexpat is a part of the interpreter, as in Debian.
    sed -i '1i #define Py_BUILD_CORE_MODULE 1' Modules/pyexpat.c
fi

# Modules whose libraries have no recipe. Otherwise, setup.py would build them against the host's
# -dev packages.
cat > Modules/Setup.local <<'LIST'
*disabled*
_crypt
_dbm
_gdbm
_tkinter
_uuid
nis
LIST

# Keep the host's headers out: setup.py adds their directories.
sed -i "s|self.add_multiarch_paths()|pass|
    s|add_dir_to_list(.*, '/usr/local/.*')|pass|" setup.py

# sysconfig records these settings, and extension modules are built with them later. So use the plain
# names of compilers, and only paths below $PREFIX. Flags in _NODIST variables apply to this build
# only: -fno-semantic-interposition makes a shared libpython about as fast as a static one; with -O3
# and LTO, pure Python takes 12 % less time. -s removes LTO's temporary names from the symbol table.
# With pkg-config, sysconfig would record the host's libraries. ac_cv_file__dev_ptmx is an environment
# variable, because sysconfig would record an argument; without it, the record would depend on the
# host's terminals.
export ac_cv_file__dev_ptmx=yes
./configure --prefix="$PREFIX" --enable-shared --without-static-libpython --enable-ipv6 \
    --with-openssl="$PREFIX" --with-pkg-config=no --with-ensurepip=no --disable-test-modules \
    "${expat[@]}" \
    CC=gcc CXX=g++ OPT="-fwrapv -O3 -Wall" CPPFLAGS="-I$PREFIX/include" LDFLAGS="-L$PREFIX/lib" \
    CFLAGS_NODIST="-fno-semantic-interposition -flto" \
    LDFLAGS_NODIST="-fno-semantic-interposition -flto=auto -s" \
    ac_cv_header_uuid_uuid_h=no
make=(make)
# Two programs freeze modules and run for a second each, but LTO would take a minute to link each of
# them. Compile them before, without optimization; --old-file keeps make from rebuilding them.
if grep -q '^_bootstrap_python:' Makefile; then
    programs=(Programs/_freeze_module _bootstrap_python)
    make -j"$CPU_COUNT" "${programs[@]}" CFLAGS_NODIST="-O0 -fno-lto" LDFLAGS_NODIST=-fno-lto
    find . -name '*.o' -delete
    make+=("${programs[@]/#/--old-file=}")
fi
# Compile the interpreter with the recipe's profile (PGO). If each build recorded a profile, the
# profiles would differ, because the interpreter hashes addresses. gcc rejects a profile of other
# sources or of another gcc.
case ${PYTHON_PROFILE-} in
    use) profile="-fprofile-use -fprofile-correction -fprofile-partial-training -Werror=missing-profile" ;;
    record)
        python3 unpack-debs.py
        profile="-fprofile-generate -L$PWD/debian/usr/lib/gcc/x86_64-linux-gnu/10"
        ;;
    *) profile= ;;
esac
# Build the library in a separate call of make: sysconfig would record the call's arguments. The target
# pybuilddir.txt writes sysconfig's record. Only then give CC a flag that hides the absolute paths by
# which extension modules are compiled.
"${make[@]}" -j"$CPU_COUNT" "libpython${PKG_VERSION%.*}.so" CFLAGS_NODIST="$profile" LDFLAGS_NODIST="$profile"
"${make[@]}" -j"$CPU_COUNT" pybuilddir.txt
"${make[@]}" -j"$CPU_COUNT" CC="gcc -ffile-prefix-map=$SRC_DIR=/usr/src/python"
# `make install` would compile the standard library's bytecode three times; it is removed below.
mv Lib/compileall.py .
touch Lib/compileall.py
"${make[@]}" install
library="$PREFIX/lib/python${PKG_VERSION%.*}"
install -m 644 -t "$library" compileall.py
if [ "${PYTHON_PROFILE-}" = record ]; then
    # The interpreter writes its counts to the directory of its object files, below GCOV_PREFIX. Replace
    # the build directory by a path of the same length that is always valid.
    sed -i "s|$SRC_DIR|$(printf "%-${#SRC_DIR}s" /dev/null | tr " " /)|g" "$PREFIX/lib/libpython${PKG_VERSION%.*}.so.1.0"
fi
ln -s python3 "$PREFIX/bin/python"

# Start pydoc through a shell: the placeholder is too long for a #! line, and the engine would replace
# it by the python3 on PATH.
program="$PREFIX/bin/pydoc${PKG_VERSION%.*}"
sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python\" \"\$0\" \"\$@\"\n' '''" "$program"

sed -i "s|$SRC_DIR|/usr/src/python|g" "$library"/_sysconfigdata_*.py "$library"/config-*/Makefile

# Bytecode that Python checks by the hash of its source contains no time, and with -s no path of the
# build. Leave out modules that contain the prefix, which changes at installation; Python compiles them
# at first import.
find "$library" -name __pycache__ -prune -exec rm -r {} +
"$PREFIX/bin/python" -B -m compileall -q -j"$CPU_COUNT" --invalidation-mode checked-hash \
    -s "$PREFIX" -x '/_sysconfigdata_|/config-3' "$library"
