#!/bin/bash
# Compiles the modules in a directory below $PREFIX. Where users may not write, Python would compile
# them at every start. What holds the prefix is left to the first import, and tests to theirs.
set -euo pipefail

cd "$PREFIX"
directory=${1#"$PREFIX/"}
find "$directory" -name '*.py[co]' -delete
# Python 2 tells by the source's time whether its bytecode is of it: that of all files in packages.
find "$directory" -name '*.py' -exec touch --date=@1595894400 {} +
find "$directory" -name '*.py' ! -path '*/test/*' ! -path '*/tests/*' \
    ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    bin/python2.7 -B -m compileall -q -i -
