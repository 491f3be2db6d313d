#!/bin/bash
# Apply the patches from debian/patches that the recipe's list `fixes` names, and install the list. So
# the list in a package names exactly the patches that were applied.
set -euo pipefail

requested=$PWD/debian/fixes available=$PWD/debian/available
sed '/^#/d; s/ .*//' "$RECIPE_DIR/fixes" > "$requested"
# `available` lists the requested patches that the series contains, in the order of the series. A patch
# that is missing in the series, or out of order in the list, makes the two files differ.
sed 's/[[:space:]].*//' debian/patches/series | grep -xFf "$requested" > "$available" || :
if ! diff "$requested" "$available"; then
    echo "fixes: the patches marked '<' are not in Debian's series, or not in its order" >&2
    exit 1
fi
# Allow no fuzz, as Debian does: a patch whose context differs could change the wrong lines.
while read -r name; do
    echo "fix: $name"
    patch -p1 --fuzz=0 --forward --no-backup-if-mismatch < "debian/patches/$name"
done < "$requested"
install -D -m 644 "$RECIPE_DIR/fixes" "$PREFIX/share/theano-fast/fixes/$PKG_NAME"
