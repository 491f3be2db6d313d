#!/bin/bash
# Compile the bytecode of the modules in a directory below $PREFIX. In an environment that users cannot
# write to, Python would compile each module at each start. Leave out tests, and modules that contain
# the prefix, which changes at installation; Python compiles them at first import.
set -euo pipefail

cd "$PREFIX"
directory=${1#"$PREFIX/"}
find "$directory" -name '*.py[co]' -delete
# Python 2 uses bytecode only if it records the source file's modification time. Set the time that all
# files in packages have.
find "$directory" -name '*.py' -exec touch --date=@1595894400 {} +
find "$directory" -name '*.py' ! -path '*/test/*' ! -path '*/tests/*' \
    ! -exec grep -qF "$PREFIX" {} \; -print | sort |
    bin/python2.7 -B -m compileall -q -i -
