#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
mkdir -p build/{bin,lib/graphviz}
cp debian/usr/bin/dot build/bin
for library in cdt.so.5 cgraph.so.6 expat.so.1 gvc.so.6 ltdl.so.7 pathplan.so.4; do
    cp -L "$(find debian -name "lib$library")" build/lib
done
python3 older_glibc.py build/lib/libgvc.so.6
for plugin in core dot_layout; do
    cp -L "$(find debian -name "libgvplugin_$plugin.so.6")" build/lib/graphviz
done
# dot -c writes a list of the plugins' features into their directory. It fails in a directory with a
# path as long as $PREFIX, so run it before the installation.
LD_LIBRARY_PATH="$PWD/build/lib" build/bin/dot -c
cp -r build/. "$PREFIX"
