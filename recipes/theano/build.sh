#!/bin/bash
set -euo pipefail

# Remove theano-nose, because nose does not run on this Python.
rm bin/theano_nose.py
# scan_steps.c replaces these files.
rm theano/scan_module/{scan_perform_ext.py,c_code/scan_perform.c}
# Remove the stubs. Only mypy uses them, because it checks src without the rest of Theano.
find theano -name '*.pyi' -delete

cp "$RECIPE_DIR/conftest.py" theano/

# Theano calls this library only on processors with AVX2 and fused multiply-add.
mkdir -p "$PREFIX/lib"
g++ -O3 -mavx2 -mfma -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Werror \
    -fPIC -shared -nostdlib -Wl,-soname,libtheano_functions.so \
    theano/gof/c_code/theano_functions.cpp -o "$PREFIX/lib/libtheano_functions.so"

# Install through a wheel, because an installation from the directory would record the path.
pip="$PYTHON -m pip --no-cache-dir"
$pip wheel . --no-deps --no-index --no-build-isolation --wheel-dir dist
$pip install Theano --no-deps --no-index --no-compile --find-links dist

# pip quotes the interpreter's path only if it has a space; the placeholder has none.
sed -i "s|^'''exec' \(.*/bin/python[0-9.]*\) |'''exec' \"\1\" |" "$PREFIX/bin/theano-cache"

# In a read-only environment, Python would compile the sources at every start. Hash-based bytecode
# contains no timestamp. Files that contain the prefix are compiled at their first import.
find "$SP_DIR/theano" -name '*.py' ! -path "$SP_DIR/theano/*/tests/*" \
    ! -name 'test_*' ! -name conftest.py \
    ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode checked-hash -s "$PREFIX" -i -
