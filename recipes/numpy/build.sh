#!/bin/bash
set -euo pipefail

tools=$SRC_DIR/wheels/tools
# Compile the tools' bytecode, because the build starts them some hundred times.
"$PYTHON" -m pip install --compile --target "$tools" wheels/*.whl
export PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1
export PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# Cython writes the absolute path of its source file into the module. Make it write a relative path.
sed -i "/^from Cython/a\\
import os; from Cython.Compiler.Scanning import FileSourceDescriptor\\
FileSourceDescriptor.get_filenametable_entry = lambda self: os.path.relpath(self.filename, '$SRC_DIR')
" "$tools/bin/cython"

# By default gcc 10 tunes for processors without AVX2. Tune for Haswell, the first with AVX2: numpy.std
# and numpy.take then need 0.9 of the time, as with gcc 12.
export CFLAGS="${CFLAGS:-} -mtune=haswell" CXXFLAGS="${CXXFLAGS:-} -mtune=haswell"
# -s: remove the symbol table, because it contains names of the linker's temporary files.
# Install from a wheel: an installation from the directory would record the directory's path.
LDFLAGS="${LDFLAGS:-} -s" "$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dwarning_level=0 -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Dallow-noblas=false
"$PYTHON" -m pip install --no-compile --find-links dist numpy

# Quote the interpreter's path in case the prefix contains a space. pip quotes it only if the path has
# a space now, and the placeholder has none.
sed -i "s|^'''exec' \(.*/bin/python[0-9.]*\) |'''exec' \"\1\" |" "$PREFIX/bin/f2py"

# Package the bytecode: in an environment that users cannot write to, Python would compile each module
# at each start. Bytecode that Python checks by the hash of its source contains no time. Leave out
# modules that contain the prefix, which changes at installation; Python compiles them at first import.
find "$SP_DIR/numpy" -name '*.py' ! -path '*/tests/*' ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode checked-hash -s "$PREFIX" -i -
