#!/bin/bash
# Applies those of Debian's patches, in debian/, that the recipe's list `fixes` names, and puts the
# list into the package: what a package says was mended in it is what was applied.
set -euo pipefail

listed=$PWD/debian/fixes found=$PWD/debian/found
sed '/^#/d; s/ .*//' "$RECIPE_DIR/fixes" > "$listed"
# A name that the series lacks would be missing here, and one out of turn would not be in its line.
sed 's/[[:space:]].*//' debian/patches/series | grep -xFf "$listed" > "$found" || :
if ! diff "$listed" "$found"; then
    echo "fixes: '<' is not in Debian's series, or not in its order" >&2
    exit 1
fi
# Without fuzz, as Debian applies them: what does not fit as it was written may land elsewhere.
while read -r name; do
    echo "fix: $name"
    patch -p1 --fuzz=0 --forward --no-backup-if-mismatch < "debian/patches/$name"
done < "$listed"
install -D -m 644 "$RECIPE_DIR/fixes" "$PREFIX/share/theano-fast/fixes/$PKG_NAME"
