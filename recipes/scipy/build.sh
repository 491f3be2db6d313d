#!/bin/bash
set -euo pipefail

# Meson links Fortran with what compilers say of where they look, which without this has the host's.
sysroot=--sysroot=$BUILD_PREFIX/x86_64-linux-gnu/sysroot
export CC="gcc $sysroot" CXX="g++ $sysroot" FC="gfortran $sysroot"

tools=$SRC_DIR/wheels/tools
# Compiled: they are started some hundred times.
"$PYTHON" -m pip install --compile --target "$tools" wheels/*.whl
# Meson would ask the host's CMake, and get the host's xsimd for pythran's own.
export CMAKE=false
export PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1
export PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# Cython writes the absolute path of its source into the module; and what is in the
# host environment is not always as many directories away from the source.
sed -i "/^from Cython/a\\
import os; from Cython.Compiler.Scanning import FileSourceDescriptor\\
FileSourceDescriptor.get_filenametable_entry = lambda self: os.path.relpath(self.filename, '$PREFIX' if self.filename.startswith('$PREFIX') else '$SRC_DIR')
" "$tools/bin/cython"

# The g77 wrappers call the functions that return a complex number by way of
# CBLAS: how Fortran returns one differs between the implementations.
# By way of a wheel: installed from a directory, scipy would record its path.
"$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dwarning_level=0 -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Duse-g77-abi=true
"$PYTHON" -m pip install --no-compile --find-links dist scipy
# What it tells of the compilers, without where they were.
sed -i "s|, $sysroot||" "$SP_DIR/scipy/__config__.py"

# Where users may not write, Python would compile it at every start. Checked by the hash of its
# source, bytecode holds no time; what holds the prefix is left to the first import.
find "$SP_DIR/scipy" -name '*.py' ! -path '*/tests/*' ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode checked-hash -s "$PREFIX" -i -
