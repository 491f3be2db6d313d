#!/bin/bash
set -euo pipefail
requires=${REQUIRES-}

archive=$PREFIX/lib/liblapack.a
if [ "$NAME" != lapack ]; then
    archive=$SRC_DIR/lib$NAME.a
    flags="-O2 -fPIC"
    cp make.inc.example make.inc
    make -j"$CPU_COUNT" "${NAME}lib" BLASLIB="$archive" CBLASLIB="$archive" \
        CFLAGS="$flags" FFLAGS="$flags -frecursive"
fi

mkdir -p "$PREFIX/lib/pkgconfig"
gfortran -shared -Wl,--as-needed -Wl,-soname,"lib$NAME.so.3" -o "$PREFIX/lib/lib$NAME.so.3" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -L"$PREFIX/lib" ${requires:+"-l$requires"}
ln -s "lib$NAME.so.3" "$PREFIX/lib/lib$NAME.so"
if [ "$NAME" = cblas ]; then
    install -D -m 644 -t "$PREFIX/include" CBLAS/include/cblas{,_mangling}.h
fi

cat > "$PREFIX/lib/pkgconfig/$NAME.pc" <<EOF
prefix=$PREFIX
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: $NAME
Description: Reference implementation of ${NAME^^}
Version: $PKG_VERSION
Libs: -L\${libdir} -l$NAME
Cflags: -I\${includedir}
Requires.private: $requires
EOF
