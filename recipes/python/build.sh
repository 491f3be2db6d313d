#!/bin/bash
set -euo pipefail

# sys.version contains this date. Use the date of the release, because each build has another date.
SOURCE_DATE_EPOCH=$(stat -c %Y README.rst)
export SOURCE_DATE_EPOCH

# This script also builds stock Theano's interpreter: CPython's release without fixes.
expat=()
if [ -f "$RECIPE_DIR/fixes" ]; then
    bash apply-fixes.sh
    # CPython's copy of expat has no security fixes; the package libexpat has them.
    expat=(--with-system-expat)
    # The patch for CVE-2026-4224 uses an internal API of the interpreter, because Debian's pyexpat is a
    # part of the interpreter. Here pyexpat is an extension module: it needs this macro to use the API.
    sed -i '1i #define Py_BUILD_CORE_MODULE 1' Modules/pyexpat.c
fi

# Disable modules whose libraries have no recipe. Otherwise, setup.py would compile them with the
# libraries of the host's -dev packages.
cat > Modules/Setup.local <<'LIST'
*disabled*
_crypt
_dbm
_gdbm
_tkinter
_uuid
nis
LIST

# Remove the host's directories of headers and libraries, which setup.py adds.
sed -i "s|self.add_multiarch_paths()|pass|
    s|add_dir_to_list(.*, '/usr/local/.*')|pass|" setup.py

# sysconfig records these settings, and later builds of extension modules use them. So name the
# compilers without a directory, and use only paths below $PREFIX. Flags in _NODIST variables apply only
# to this build. -fno-semantic-interposition makes a shared libpython about as fast as a static one. -O3
# and LTO reduce the time of pure Python code by 12 %. -s removes LTO's temporary names from the symbol
# table. With pkg-config, sysconfig would record the host's libraries. Without ac_cv_file__dev_ptmx,
# sysconfig's record would depend on whether the host has /dev/ptmx. This setting is an environment
# variable, because sysconfig would record an argument.
export ac_cv_file__dev_ptmx=yes
./configure --prefix="$PREFIX" --enable-shared --without-static-libpython --enable-ipv6 \
    --with-openssl="$PREFIX" --with-pkg-config=no --with-ensurepip=no --disable-test-modules \
    "${expat[@]}" \
    CC=gcc CXX=g++ OPT="-fwrapv -O3 -Wall" CPPFLAGS="-I$PREFIX/include" LDFLAGS="-L$PREFIX/lib" \
    CFLAGS_NODIST="-fno-semantic-interposition -flto" \
    LDFLAGS_NODIST="-fno-semantic-interposition -flto=auto -s" \
    ac_cv_header_uuid_uuid_h=no
make=(make)
# The build runs two programs that freeze modules. Each program runs for a second, but takes a minute to
# link with LTO. So first compile both programs without optimization. --old-file keeps make from
# rebuilding them.
if grep -q '^_bootstrap_python:' Makefile; then
    programs=(Programs/_freeze_module _bootstrap_python)
    make -j"$CPU_COUNT" "${programs[@]}" CFLAGS_NODIST="-O0 -fno-lto" LDFLAGS_NODIST=-fno-lto
    find . -name '*.o' -delete
    make+=("${programs[@]/#/--old-file=}")
fi
# Compile the interpreter with the recipe's profile (PGO). Builds do not record their own profiles: the
# interpreter hashes addresses, so each build would record another profile. gcc rejects a profile of
# other sources or of another gcc.
case ${PYTHON_PROFILE-} in
    use) profile="-fprofile-use -fprofile-correction -fprofile-partial-training -Werror=missing-profile" ;;
    record)
        python3 unpack-debs.py
        profile="-fprofile-generate -L$PWD/debian/usr/lib/gcc/x86_64-linux-gnu/10"
        ;;
    *) profile= ;;
esac
# The target pybuilddir.txt writes sysconfig's record, which contains the arguments of this call of
# make. So build the library, which needs the profile's flags, in an earlier call. Build extension
# modules in a later call: setup.py compiles them by absolute paths, and -ffile-prefix-map removes these
# paths.
"${make[@]}" -j"$CPU_COUNT" "libpython${PKG_VERSION%.*}.so" CFLAGS_NODIST="$profile" LDFLAGS_NODIST="$profile"
"${make[@]}" -j"$CPU_COUNT" pybuilddir.txt
"${make[@]}" -j"$CPU_COUNT" CC="gcc -ffile-prefix-map=$SRC_DIR=/usr/src/python"
# `make install` would compile the standard library three times to bytecode, which is removed below. So
# make compileall.py empty until the installation ends.
mv Lib/compileall.py .
touch Lib/compileall.py
"${make[@]}" install
library="$PREFIX/lib/python${PKG_VERSION%.*}"
install -m 644 -t "$library" compileall.py
if [ "${PYTHON_PROFILE-}" = record ]; then
    # The interpreter writes its counts to the path of the build directory below GCOV_PREFIX.
    # Replace the build directory by a fixed path, which slashes extend to the same length.
    sed -i "s|$SRC_DIR|$(printf "%-${#SRC_DIR}s" /dev/null | tr " " /)|g" "$PREFIX/lib/libpython${PKG_VERSION%.*}.so.1.0"
fi
ln -s python3 "$PREFIX/bin/python"

# Make pydoc a shell script that starts the environment's Python. The placeholder is too long for a #!
# line, so the engine would write a #! line that starts the python3 on PATH.
program="$PREFIX/bin/pydoc${PKG_VERSION%.*}"
sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python\" \"\$0\" \"\$@\"\n' '''" "$program"

sed -i "s|$SRC_DIR|/usr/src/python|g" "$library"/_sysconfigdata_*.py "$library"/config-*/Makefile

# Compile the bytecode. Python checks it by the times of its sources: `import theano` takes 9 ms less
# than with a check by hashes. builder/package/canonical.py sets the times. -s removes the path of the
# build from the bytecode. Skip modules that contain the prefix: an installation changes the prefix, so
# Python compiles these modules at their first import.
find "$library" -name __pycache__ -prune -exec rm -r {} +
"$PREFIX/bin/python" -B -m compileall -q -j"$CPU_COUNT" --invalidation-mode timestamp \
    -s "$PREFIX" -x '/_sysconfigdata_|/config-3' "$library"
