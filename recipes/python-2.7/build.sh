#!/bin/bash
set -euo pipefail

# sys.version tells the date of the release, not that of the build.
SOURCE_DATE_EPOCH=$(stat -c %Y README)
export SOURCE_DATE_EPOCH

# Neither modules whose libraries have no recipe, nor headers and libraries of the host's.
unwanted="'_bsddb', '_tkinter', 'bsddb185', 'crypt', 'dbm', 'gdbm', 'nis'"
sed -i "s/^disabled_module_list = .*/disabled_module_list = [$unwanted]/
    s/self.add_multiarch_paths()/pass/
    s|add_dir_to_list(.*, '/usr/local/.*')|pass|
    s|^ *'/usr/include',$||; s|^ *'/lib64', '/usr/lib64',$||; s|^ *'/lib', '/usr/lib',$||
" setup.py

# What is set here is recorded and used for every extension module built later, so compilers have
# plain names and the flags only paths below $PREFIX. Nothing of the host's is recorded either.
export ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no PKG_CONFIG=false
./configure --prefix="$PREFIX" --enable-shared --enable-unicode=ucs4 --enable-ipv6 \
    --with-system-ffi --with-ensurepip=no \
    CC=gcc CXX=g++ CFLAGS= OPT="-DNDEBUG -fwrapv -O3 -Wall -Wstrict-prototypes" \
    CPPFLAGS="-I$PREFIX/include" LDFLAGS="-L$PREFIX/lib"
# Extension modules are compiled by their absolute path; the flag that hides it is not recorded.
make -j"$CPU_COUNT" CC="gcc -pthread -ffile-prefix-map=$SRC_DIR=/usr/src/python"
make install
ln -sf python2.7 "$PREFIX/bin/python"

# By way of a shell: the placeholder is too long for a #! line.
sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python2.7\" \"\$0\" \"\$@\"\n' '''" "$PREFIX/bin/pydoc"

library=$PREFIX/lib/python2.7
sed -i "s|$SRC_DIR|/usr/src/python|g" "$library"/_sysconfigdata.py "$library/config/Makefile"
bash compile-python2.sh "$library"
