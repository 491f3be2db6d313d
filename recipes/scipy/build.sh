#!/bin/bash
set -euo pipefail

# Meson asks the compilers for their library directories, and links Fortran code with them. Without the
# option --sysroot, the compilers also name directories of the host.
sysroot=--sysroot=$BUILD_PREFIX/x86_64-linux-gnu/sysroot
export CC="gcc $sysroot" CXX="g++ $sysroot" FC="gfortran $sysroot"

tools=$SRC_DIR/wheels/tools
# Compile the tools' bytecode, because the build starts the tools a few hundred times.
"$PYTHON" -m pip install --compile --target "$tools" wheels/*.whl
# Disable CMake: otherwise Meson would find the host's xsimd by the host's CMake, and use it instead of
# pythran's xsimd.
export CMAKE=false
export PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1
export PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# Cython writes the absolute path of its source file into the module. Make it write a relative path:
# relative to $PREFIX for files below $PREFIX, and relative to $SRC_DIR for other files. A path from
# $SRC_DIR to $PREFIX would differ among builds.
sed -i "/^from Cython/a\\
import os; from Cython.Compiler.Scanning import FileSourceDescriptor\\
FileSourceDescriptor.get_filenametable_entry = lambda self: os.path.relpath(self.filename, '$PREFIX' if self.filename.startswith('$PREFIX') else '$SRC_DIR')
" "$tools/bin/cython"

# -Duse-g77-abi=true: use CBLAS to call functions that return a complex number. BLAS implementations
# return complex numbers from Fortran functions in different ways.
# Install from a wheel: if pip installed from the directory, it would record the directory's path.
"$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dwarning_level=0 -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Duse-g77-abi=true
"$PYTHON" -m pip install --no-compile --find-links dist scipy
# Remove --sysroot from scipy.show_config(), because it contains a path of the build.
sed -i "s|, $sysroot||" "$SP_DIR/scipy/__config__.py"

# Package the bytecode. Without it, Python would compile each module at each start if users cannot write
# to the environment. Skip modules that contain the prefix. An installation changes the prefix, so Python
# compiles these modules at their first import.
find "$SP_DIR/scipy" -name '*.py' ! -path '*/tests/*' ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode timestamp -s "$PREFIX" -i -
