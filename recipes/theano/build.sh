#!/bin/bash
set -euo pipefail

# Remove the program theano-nose, because nose does not run on this Python.
rm bin/theano_nose.py
# Remove the old loop over the steps of a Scan: scan_steps.c of this recipe replaces it.
rm theano/scan_module/{scan_perform_ext.py,c_code/scan_perform.c}
# Remove the stubs (.pyi). Only mypy needs them, when it checks src without the rest of Theano.
find theano -name '*.pyi' -delete

cp "$RECIPE_DIR/conftest.py" theano/

# theano_functions.cpp may use AVX2: Theano calls these functions only on processors with AVX2 and
# fused multiply-add. theano_products.cpp tests the processor itself.
mkdir -p "$PREFIX/lib"
flags=(-c -fPIC -Wall -Wextra -Werror)
sources=theano/gof/c_code
g++ "${flags[@]}" -O3 -mavx2 -mfma -ffp-contract=off -fno-math-errno -fno-trapping-math \
    $sources/theano_functions.cpp -o theano_functions.o
g++ "${flags[@]}" -O2 $sources/theano_products.cpp -o theano_products.o
g++ -shared -Wl,--as-needed,-soname,libtheano_functions.so theano_functions.o theano_products.o \
    -o "$PREFIX/lib/libtheano_functions.so"

# Install from a wheel in a directory that pip searches. If pip installed the source directory, it
# would record the path of the build in direct_url.json.
pip="$PYTHON -m pip --no-cache-dir"
$pip wheel . --no-deps --no-index --no-build-isolation --wheel-dir dist
$pip install Theano --no-deps --no-index --no-compile --find-links dist

# Quote the path of the interpreter in the script. pip quotes a path only if it contains a space.
# The prefix placeholder contains none, but the prefix of the installation may.
sed -i "s|^'''exec' \(.*/bin/python[0-9.]*\) |'''exec' \"\1\" |" "$PREFIX/bin/theano-cache"

# Compile the sources, because in a read-only environment, Python would compile them at every start.
# Omit files that contain the prefix: the installation replaces it, so Python must compile them at their
# first import.
find "$SP_DIR/theano" -name '*.py' ! -path "$SP_DIR/theano/*/tests/*" \
    ! -name 'test_*' ! -name conftest.py \
    ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    "$PYTHON" -B -m compileall -q --invalidation-mode timestamp -s "$PREFIX" -i -

# The graph cache recognizes another build by this digest (theano/gof/graph_cache/keys.py).
(cd "$SP_DIR/theano" && find . -name '*.py' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) |
    sha256sum > "$SP_DIR/theano/package_digest"
