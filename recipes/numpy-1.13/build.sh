#!/bin/bash
set -euo pipefail

# Use only the libraries in $PREFIX: None keeps numpy.distutils from searching the host for others.
export MKL=None BLIS=None OPENBLAS=None ATLAS=None PTATLAS=None
cat > site.cfg <<END
[DEFAULT]
library_dirs = $PREFIX/lib
include_dirs = $PREFIX/include
END
CFLAGS="-ffile-prefix-map=$SRC_DIR=/usr/src/numpy" "$PYTHON" setup.py build -j"$CPU_COUNT" \
    install --single-version-externally-managed --root=/ --prefix="$PREFIX"

# Start Python through a shell: the placeholder of the prefix is too long for a #! line.
rm -f "$PREFIX/bin/f2py2" "$PREFIX/bin/f2py2.7"
sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python2.7\" \"\$0\" \"\$@\"\n' '''" "$PREFIX/bin/f2py"
sed -i "s|$SRC_DIR/||" "$SP_DIR"/numpy/{,distutils/}__config__.py
bash compile-python2.sh "$SP_DIR/numpy"
