#!/bin/bash
set -euo pipefail
# By default configure finds the host's libtinfo and termcap.h before this environment's ncurses.
export bash_cv_termcap_lib=libncursesw ac_cv_header_termcap_h=no
# configure tests wcwidth in the locale en_US.UTF-8, which the host may lack. glibc's wcwidth is correct.
export bash_cv_wcwidth_broken=no
CFLAGS="-O2" CPPFLAGS="-I$PREFIX/include" LDFLAGS="-L$PREFIX/lib" \
    ./configure --prefix="$PREFIX" --disable-static --disable-install-examples
make -j"$CPU_COUNT" SHLIB_LIBS=-lncursesw
make install
