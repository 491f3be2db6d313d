#!/bin/bash
set -euo pipefail

"$PYTHON" setup.py install --single-version-externally-managed --root=/ --prefix="$PREFIX"

# Start Python through a shell: the placeholder of the prefix is too long for a #! line.
for script in cache nose test; do
    sed -i "1c #!/bin/sh\n'''exec' \"$PREFIX/bin/python2.7\" \"\$0\" \"\$@\"\n' '''" \
        "$PREFIX/bin/theano-$script"
done
bash compile-python2.sh "$SP_DIR/theano"
