#!/bin/bash
set -euo pipefail

# Only what is named here, and nothing that the host has.
export MKL=None BLIS=None OPENBLAS=None ATLAS=None PTATLAS=None UMFPACK=None
cat > site.cfg <<END
[DEFAULT]
library_dirs = $PREFIX/lib
include_dirs = $PREFIX/include
END

# Fortran of the time passes a routine arguments of several types, which gfortran 10 refuses. numpy
# takes -g, with the paths that go with it, from nowhere but itself.
mkdir compiler
cat > compiler/gfortran <<END
#!/bin/bash
exec "$(command -v gfortran)" "\$@" -g0 -fallow-argument-mismatch -ffile-prefix-map=$SRC_DIR=/usr/src/scipy
END
chmod +x compiler/gfortran
export PATH=$PWD/compiler:$PATH CFLAGS=-ffile-prefix-map=$SRC_DIR=/usr/src/scipy

"$PYTHON" setup.py build -j"$CPU_COUNT" \
    install --single-version-externally-managed --root=/ --prefix="$PREFIX"
sed -i "s|$SRC_DIR/||" "$SP_DIR/scipy/__config__.py"
# It names files by where they were.
rm "$SP_DIR"/scipy-*.egg-info/SOURCES.txt
bash compile-python2.sh "$SP_DIR/scipy"
