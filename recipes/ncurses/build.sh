#!/bin/bash
set -euo pipefail

# If this package does not describe a terminal, ncurses searches the host's directories.
terminfo="$PREFIX/share/terminfo"
# Tell configure that poll works: its own test fails on a machine without a terminal.
CFLAGS="-O2" cf_cv_working_poll=yes ./configure --prefix="$PREFIX" --enable-widec --enable-overwrite \
    --with-shared --without-normal --without-debug --without-ada --without-cxx \
    --without-manpages --without-tests --disable-stripping \
    --with-default-terminfo-dir="$terminfo" \
    --with-terminfo-dirs="$terminfo:/etc/terminfo:/lib/terminfo:/usr/share/terminfo" \
    --enable-pc-files --with-pkg-config-libdir="$PREFIX/lib/pkgconfig"
make -j"$CPU_COUNT"
make install.libs install.includes

# Package only the terminals in common use. The whole database has about 2800 descriptions.
terminals=ansi,dumb,linux,vt100,vt102,vt220
terminals+=,xterm,xterm-color,xterm-256color,alacritty,rxvt,rxvt-256color
terminals+=,screen,screen-256color,tmux,tmux-256color
mkdir -p "$terminfo"  # without this directory, tic writes into the home directory
LD_LIBRARY_PATH=lib progs/tic -x -o "$terminfo" -e "$terminals" misc/terminfo.src
