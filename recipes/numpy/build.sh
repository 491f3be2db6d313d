#!/bin/bash
set -euo pipefail

tools=$SRC_DIR/wheels/tools
# Compiled: they are started some hundred times.
"$PYTHON" -m pip install --compile --target "$tools" wheels/*.whl
export PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1
export PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# Cython writes the absolute path of its source into the module.
sed -i "/^from Cython/a\\
import os; from Cython.Compiler.Scanning import FileSourceDescriptor\\
FileSourceDescriptor.get_filenametable_entry = lambda self: os.path.relpath(self.filename, '$SRC_DIR')
" "$tools/bin/cython"

# By itself gcc 10 tunes for processors before AVX2. Tuned for the first with it, std and take take 0.9
# of the time, which is what gcc 12 makes of them.
export CFLAGS="${CFLAGS:-} -mtune=haswell" CXXFLAGS="${CXXFLAGS:-} -mtune=haswell"
# test-simd: the module that tests instructions, not packaged, is compiled for each of these.
# -s: the names of temporary files, assembled while linking, are among the symbols.
# By way of a wheel: installed from a directory, numpy would record its path.
LDFLAGS="${LDFLAGS:-} -s" "$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dwarning_level=0 -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Dallow-noblas=false \
    -Csetup-args=-Dtest-simd=BASELINE
"$PYTHON" -m pip install --no-compile --find-links dist numpy

# pip quotes the interpreter only where its path has a space, which the placeholder has not.
sed -i "s|^'''exec' \(.*/bin/python[0-9.]*\) |'''exec' \"\1\" |" "$PREFIX/bin/f2py"

# Where users may not write, Python would compile it at every start. Checked by the hash of its
# source, bytecode holds no time; what holds the prefix is left to the first import.
find "$SP_DIR/numpy" -name '*.py' ! -path '*/tests/*' ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode checked-hash -s "$PREFIX" -i -
