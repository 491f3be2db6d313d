#!/bin/bash
set -euo pipefail

# Use only the libraries in $PREFIX: None keeps numpy.distutils from searching the host for others.
export MKL=None BLIS=None OPENBLAS=None ATLAS=None PTATLAS=None UMFPACK=None
cat > site.cfg <<END
[DEFAULT]
library_dirs = $PREFIX/lib
include_dirs = $PREFIX/include
END

# Call gfortran through a script that adds flags. SciPy's old Fortran code calls a routine with arguments
# of different types, which gfortran 10 refuses by default. numpy.distutils always passes -g, which
# records paths; no setting turns it off, so override it with -g0.
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
# This file lists the paths of the build directory.
rm "$SP_DIR"/scipy-*.egg-info/SOURCES.txt
bash compile-python2.sh "$SP_DIR/scipy"
