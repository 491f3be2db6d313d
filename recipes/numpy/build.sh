#!/bin/bash
set -euo pipefail

tools=$SRC_DIR/tools
"$PYTHON" -m pip install --no-compile --target "$tools" wheels/*.whl
export PYTHONPATH=$tools PATH=$tools/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# By way of a wheel: installed from a directory, numpy would record its path.
"$PYTHON" -m pip wheel . --wheel-dir dist -Cbuilddir=build -Ccompile-args=-j"$CPU_COUNT" \
    -Csetup-args=-Dblas=blas -Csetup-args=-Dlapack=lapack -Csetup-args=-Dallow-noblas=false
"$PYTHON" -m pip install --no-compile --find-links dist numpy
