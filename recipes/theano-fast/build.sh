#!/bin/bash
set -euo pipefail

cp -r theano_fast theano_fast_*.pth "$SP_DIR"
install -m 644 elf.py "$SP_DIR/theano_fast/elf.py"

# Write the metadata that `pip list` and importlib.metadata read: pip does not install this package.
information="$SP_DIR/theano_fast-$PKG_VERSION.dist-info"
mkdir "$information"
cat > "$information/METADATA" <<END
Metadata-Version: 2.1
Name: theano-fast
Version: $PKG_VERSION
Summary: Verifies, describes and tunes a Theano environment
END
echo conda > "$information/INSTALLER"
