#!/bin/bash
set -euo pipefail

# theano-nose: nose does not run on this Python.
rm bin/theano_nose.py
# scan_steps is in their place.
rm theano/scan_module/{scan_perform_ext.py,c_code/scan_perform.c}
# Stubs for mypy, which has not got the rest of Theano where it checks src.
find theano -name '*.pyi' -delete

cp "$RECIPE_DIR/conftest.py" theano/

# Called where the processor has AVX2 and fused multiply-add.
mkdir -p "$PREFIX/lib"
g++ -O3 -mavx2 -mfma -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Werror \
    -fPIC -shared -nostdlib -Wl,-soname,libtheano_functions.so \
    theano/gof/c_code/theano_functions.cpp -o "$PREFIX/lib/libtheano_functions.so"

# Through a wheel: an installation of the directory itself would record its path.
pip="$PYTHON -m pip --no-cache-dir"
$pip wheel . --no-deps --no-index --no-build-isolation --wheel-dir dist
$pip install Theano --no-deps --no-index --no-compile --find-links dist

# pip quotes the interpreter only where its path has a space, which the placeholder has not.
sed -i "s|^'''exec' \(.*/bin/python[0-9.]*\) |'''exec' \"\1\" |" "$PREFIX/bin/theano-cache"

# Where users may not write, Python would compile it at every start. Checked by the hash of its
# source, bytecode holds no time; what holds the prefix is left to the first import.
find "$SP_DIR/theano" -name '*.py' ! -path "$SP_DIR/theano/*/tests/*" \
    ! -name 'test_*' ! -name conftest.py \
    ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode checked-hash -s "$PREFIX" -i -
