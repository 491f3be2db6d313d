#!/bin/bash
set -euo pipefail

"$PYTHON" setup.py install --single-version-externally-managed --root=/ --prefix="$PREFIX"
# setup.py installs the scripts' directory as a package called bin, which is anybody's name.
rm -r "${SP_DIR:?}/bin"

# By way of a shell: the placeholder is too long for a #! line.
for script in cache nose test; do
    sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python2.7\" \"\$0\" \"\$@\"\n' '''" \
        "$PREFIX/bin/theano-$script"
done
bash compile-python2.sh "$SP_DIR/theano"
