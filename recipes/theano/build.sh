#!/bin/bash
set -euo pipefail

# theano-nose: nose does not run on this Python.
rm bin/theano_nose.py
# scan_steps is in their place.
rm theano/scan_module/{scan_perform_ext.py,c_code/scan_perform.c}

cp "$RECIPE_DIR/conftest.py" theano/

# Through a wheel: an installation of the directory itself would record its path.
pip="$PYTHON -m pip --no-cache-dir"
$pip wheel . --no-deps --no-index --no-build-isolation --wheel-dir dist
$pip install Theano --no-deps --no-index --no-compile --find-links dist
