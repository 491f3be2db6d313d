#!/bin/bash
set -euo pipefail

# sys.version tells the date of the release, not that of the build.
SOURCE_DATE_EPOCH=$(stat -c %Y README.rst)
export SOURCE_DATE_EPOCH

# The interpreter of stock Theano, which this builds too, is as it was released.
if [ -f "$RECIPE_DIR/fixes" ]; then
    bash apply-fixes.sh
    # The patch for CVE-2026-4224 takes pyexpat for a part of the interpreter, as it is Debian's.
    sed -i '1i #define Py_BUILD_CORE_MODULE 1' Modules/pyexpat.c
fi

# Modules whose libraries have no recipe: without this list they are built
# against whatever -dev packages the host has.
cat > Modules/Setup.local <<'LIST'
*disabled*
_crypt
_dbm
_gdbm
_tkinter
_uuid
nis
LIST

# Nor are modules compiled with headers of the host's, which setup.py would name besides.
sed -i "s|self.add_multiarch_paths()|pass|
    s|add_dir_to_list(.*, '/usr/local/.*')|pass|" setup.py

# What is set here is recorded in sysconfig and used for every extension module
# built later, so the compilers have plain names and the flags only paths below
# $PREFIX. The _NODIST flags are those of this build alone: without semantic
# interposition a shared libpython is about as fast as a static one, and with
# -O3 and LTO pure Python runs in 12 % less time. -s: LTO's temporary names are
# among the symbols. pkg-config would add the host's libraries to the record.
# Whether the host has terminals changes no module, but would be recorded, as
# would what is said here if it were an argument.
export ac_cv_file__dev_ptmx=yes
./configure --prefix="$PREFIX" --enable-shared --without-static-libpython --enable-ipv6 \
    --with-openssl="$PREFIX" --with-pkg-config=no --with-ensurepip=no --disable-test-modules \
    CC=gcc CXX=g++ OPT="-fwrapv -O3 -Wall" CPPFLAGS="-I$PREFIX/include" LDFLAGS="-L$PREFIX/lib" \
    CFLAGS_NODIST="-fno-semantic-interposition -flto" \
    LDFLAGS_NODIST="-fno-semantic-interposition -flto=auto -s" \
    ac_cv_header_uuid_uuid_h=no
make=(make)
# Two programs that freeze modules, for a second each, would be linked with LTO for a minute each:
# compiled apart, as fast as can be, they stay as they are (-o).
if grep -q '^_bootstrap_python:' Makefile; then
    programs=(Programs/_freeze_module _bootstrap_python)
    make -j"$CPU_COUNT" "${programs[@]}" CFLAGS_NODIST="-O0 -fno-lto" LDFLAGS_NODIST=-fno-lto
    find . -name '*.o' -delete
    make+=("${programs[@]/#/--old-file=}")
fi
# The interpreter is compiled with a profile (PGO) that the recipe comes with: one
# that a build counted itself would differ from run to run, with the addresses
# that the interpreter hashes. gcc refuses one of other sources, or of another gcc.
case ${PYTHON_PROFILE-} in
    use) profile="-fprofile-use -fprofile-correction -fprofile-partial-training -Werror=missing-profile" ;;
    record)
        python3 unpack-debs.py
        profile="-fprofile-generate -L$PWD/debian/usr/lib/gcc/x86_64-linux-gnu/10"
        ;;
    *) profile= ;;
esac
# The library alone, for the record would have what make passes on, too. Then the
# record: extension modules are compiled by their absolute path, and the flag that
# hides it must not be recorded.
"${make[@]}" -j"$CPU_COUNT" "libpython${PKG_VERSION%.*}.so" CFLAGS_NODIST="$profile" LDFLAGS_NODIST="$profile"
"${make[@]}" -j"$CPU_COUNT" pybuilddir.txt
"${make[@]}" -j"$CPU_COUNT" CC="gcc -ffile-prefix-map=$SRC_DIR=/usr/src/python"
# It would compile the library three times, for what is removed below.
mv Lib/compileall.py .
touch Lib/compileall.py
"${make[@]}" install
library="$PREFIX/lib/python${PKG_VERSION%.*}"
install -m 644 -t "$library" compileall.py
if [ "${PYTHON_PROFILE-}" = record ]; then
    # What it counts is written where its objects were, and has to be written below GCOV_PREFIX.
    sed -i "s|$SRC_DIR|$(printf "%-${#SRC_DIR}s" /dev/null | tr " " /)|g" "$PREFIX/lib/libpython${PKG_VERSION%.*}.so.1.0"
fi
ln -s python3 "$PREFIX/bin/python"

# pydoc by way of a shell: the placeholder is too long for a #! line, and the engine would put
# whatever python3 is on PATH in its place.
program="$PREFIX/bin/pydoc${PKG_VERSION%.*}"
sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python\" \"\$0\" \"\$@\"\n' '''" "$program"

sed -i "s|$SRC_DIR|/usr/src/python|g" "$library"/_sysconfigdata_*.py "$library"/config-*/Makefile

# Compiled files that are checked by the hash of their source hold no time and,
# with -s, no path. Files that hold the prefix are left to the first import.
find "$library" -name __pycache__ -prune -exec rm -r {} +
"$PREFIX/bin/python" -B -m compileall -q -j"$CPU_COUNT" --invalidation-mode checked-hash \
    -s "$PREFIX" -x '/_sysconfigdata_|/config-3' "$library"
