#!/bin/bash
set -euo pipefail

# Meson asks the compilers for their library directories, and passes them on when it links Fortran.
# Without an explicit sysroot the answer contains directories of the host.
sysroot=--sysroot=$BUILD_PREFIX/x86_64-linux-gnu/sysroot
export CC="gcc $sysroot" CXX="g++ $sysroot" FC="gfortran $sysroot"

tools=$SRC_DIR/wheels/tools
# Compile the tools' bytecode, because the build starts them some hundred times.
"$PYTHON" -m pip install --compile --target "$tools" wheels/*.whl
# Disable CMake: Meson would ask the host's CMake, and use the host's xsimd instead of pythran's.
export CMAKE=false
export PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1
export PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# Cython writes the absolute path of its source file into the module. Make it write a path relative to
# $SRC_DIR, or to $PREFIX for files there: the relative path from one to the other differs among builds.
sed -i "/^from Cython/a\\
import os; from Cython.Compiler.Scanning import FileSourceDescriptor\\
FileSourceDescriptor.get_filenametable_entry = lambda self: os.path.relpath(self.filename, '$PREFIX' if self.filename.startswith('$PREFIX') else '$SRC_DIR')
" "$tools/bin/cython"

# -Duse-g77-abi=true: call functions that return a complex number through CBLAS, because BLAS
# implementations differ in how Fortran functions return complex numbers.
# Install from a wheel: an installation from the directory would record the directory's path.
"$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dwarning_level=0 -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Duse-g77-abi=true
"$PYTHON" -m pip install --no-compile --find-links dist scipy
# Remove the compilers' paths from scipy.show_config().
sed -i "s|, $sysroot||" "$SP_DIR/scipy/__config__.py"

# Package the bytecode: in an environment that users cannot write to, Python would compile each module
# at each start. Bytecode that Python checks by the hash of its source contains no time. Leave out
# modules that contain the prefix, which changes at installation; Python compiles them at first import.
find "$SP_DIR/scipy" -name '*.py' ! -path '*/tests/*' ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode checked-hash -s "$PREFIX" -i -
