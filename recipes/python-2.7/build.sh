#!/bin/bash
set -euo pipefail

# sys.version contains this date. Set the date of the release, so that it does not depend on the build.
SOURCE_DATE_EPOCH=$(stat -c %Y README)
export SOURCE_DATE_EPOCH

# Omit modules that need libraries without a recipe. Use neither headers nor libraries of the host.
unwanted="'_bsddb', '_tkinter', 'bsddb185', 'crypt', 'dbm', 'gdbm', 'nis'"
sed -i "s/^disabled_module_list = .*/disabled_module_list = [$unwanted]/
    s/self.add_multiarch_paths()/pass/
    s|add_dir_to_list(.*, '/usr/local/.*')|pass|
    s|^ *'/usr/include',$||; s|^ *'/lib64', '/usr/lib64',$||; s|^ *'/lib', '/usr/lib',$||
" setup.py

# Python records these settings and uses them for each extension module that is built later. So use
# the plain names of the compilers, flags with paths below $PREFIX only, and nothing of the host.
export ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no PKG_CONFIG=false
./configure --prefix="$PREFIX" --enable-shared --enable-unicode=ucs4 --enable-ipv6 \
    --with-system-ffi --with-ensurepip=no \
    CC=gcc CXX=g++ CFLAGS= OPT="-DNDEBUG -fwrapv -O3 -Wall -Wstrict-prototypes" \
    CPPFLAGS="-I$PREFIX/include" LDFLAGS="-L$PREFIX/lib"
# setup.py passes absolute paths to the compiler. This flag replaces them in the binaries. Python does
# not record variables on make's command line.
make -j"$CPU_COUNT" CC="gcc -pthread -ffile-prefix-map=$SRC_DIR=/usr/src/python"
make install
ln -sf python2.7 "$PREFIX/bin/python"

# Start Python through a shell: the placeholder of the prefix is too long for a #! line.
sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python2.7\" \"\$0\" \"\$@\"\n' '''" "$PREFIX/bin/pydoc"

library=$PREFIX/lib/python2.7
sed -i "s|$SRC_DIR|/usr/src/python|g" "$library"/_sysconfigdata.py "$library/config/Makefile"
bash compile-python2.sh "$library"
