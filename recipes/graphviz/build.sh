#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
mkdir -p made/{bin,lib/graphviz}
cp debian/usr/bin/dot made/bin
for library in cdt.so.5 cgraph.so.6 expat.so.1 gvc.so.6 ltdl.so.7 pathplan.so.4; do
    cp -L "$(find debian -name "lib$library")" made/lib
done
python3 older_glibc.py made/lib/libgvc.so.6
for plugin in core dot_layout; do
    cp -L "$(find debian -name "libgvplugin_$plugin.so.6")" made/lib/graphviz
done
# Writes down what the plugins can do, beside them; not where paths are as long as $PREFIX.
LD_LIBRARY_PATH="$PWD/made/lib" made/bin/dot -c
cp -r made/. "$PREFIX"
