#!/bin/bash
set -euo pipefail

cp -r src/. "$SP_DIR"

information="$SP_DIR/theano_pymc-$PKG_VERSION+theano.$THEANO.dist-info"
mkdir "$information"
cat > "$information/METADATA" <<END
Metadata-Version: 2.1
Name: theano-pymc
Version: $PKG_VERSION+theano.$THEANO
Summary: Names of Theano-PyMC for Theano's own objects
License: MIT
Requires-Dist: theano ==$THEANO
END
echo conda > "$information/INSTALLER"
