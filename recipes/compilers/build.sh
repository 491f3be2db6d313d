#!/bin/bash
set -euo pipefail

case $PKG_NAME in
    gcc_linux-64) tools=(gcc cc ar as ld nm objcopy objdump ranlib readelf strip) variable=CC=cc ;;
    gxx_linux-64) tools=(g++ c++) variable=CXX=c++ ;;
    gfortran_linux-64) tools=(gfortran) variable=FC=gfortran ;;
esac
mkdir -p "$PREFIX/bin" "$PREFIX/etc/conda/activate.d"
for tool in "${tools[@]}"; do
    ln -s "x86_64-conda-linux-gnu-$tool" "$PREFIX/bin/$tool"
done
echo "export ${variable/=/=x86_64-conda-linux-gnu-}" > "$PREFIX/etc/conda/activate.d/$PKG_NAME.sh"
