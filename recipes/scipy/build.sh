#!/bin/bash
set -euo pipefail

# Not in tools/: scipy looks from there for pythran's headers by a relative path.
tools=$SRC_DIR/wheels/tools
"$PYTHON" -m pip install --no-compile --target "$tools" wheels/*.whl
# Meson would ask the host's CMake, and get the host's xsimd for pythran's own.
export CMAKE=false
export PYTHONPATH=$tools PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# The g77 wrappers call the functions that return a complex number by way of
# CBLAS: how Fortran returns one differs between the implementations.
# By way of a wheel: installed from a directory, scipy would record its path.
"$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Duse-g77-abi=true
"$PYTHON" -m pip install --no-compile --find-links dist scipy
