#!/bin/bash
set -euo pipefail

tools=$SRC_DIR/wheels/tools
# Compile the tools' bytecode, because the build starts the tools a few hundred times.
"$PYTHON" -m pip install --compile --target "$tools" wheels/*.whl
export PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1
export PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# Cython writes the absolute path of its source file into the module. Make it write a relative path.
sed -i "/^from Cython/a\\
import os; from Cython.Compiler.Scanning import FileSourceDescriptor\\
FileSourceDescriptor.get_filenametable_entry = lambda self: os.path.relpath(self.filename, '$SRC_DIR')
" "$tools/bin/cython"

# By default, gcc 10 tunes for processors without AVX2. Tune for Haswell, the first processor with AVX2:
# numpy.std and numpy.take then take 10 % less time, the same time as with gcc 12.
export CFLAGS="${CFLAGS:-} -mtune=haswell" CXXFLAGS="${CXXFLAGS:-} -mtune=haswell"
# -s removes the symbol table, which contains names of the linker's temporary files.
# Install from a wheel: if pip installed from the directory, it would record the directory's path.
LDFLAGS="${LDFLAGS:-} -s" "$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dwarning_level=0 -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Dallow-noblas=false
"$PYTHON" -m pip install --no-compile --find-links dist numpy

# Quote the interpreter's path, because an environment's prefix may contain a space. pip quotes a path
# only if it contains a space, but the placeholder contains none.
sed -i "s|^'''exec' \(.*/bin/python[0-9.]*\) |'''exec' \"\1\" |" "$PREFIX/bin/f2py"

# Package the bytecode. Without it, Python would compile each module at each start if users cannot write
# to the environment. Skip modules that contain the prefix. An installation changes the prefix, so Python
# compiles these modules at their first import.
find "$SP_DIR/numpy" -name '*.py' ! -path '*/tests/*' ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode timestamp -s "$PREFIX" -i -
