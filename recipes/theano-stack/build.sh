#!/bin/bash
set -euo pipefail

case $BLAS in
    openblas) libraries=-lopenblas ;;
    # Link first to libblas.so.3, which runs small products on one thread (recipes/blas/mkl.c).
    mkl) libraries="-l:libblas.so.3 -lmkl_intel_lp64 -lmkl_gnu_thread -lmkl_core -lgomp" ;;
    *) echo "theano-stack/build.sh has no link flags for blas = $BLAS" >&2; exit 1 ;;
esac

mkdir -p "$PREFIX/etc"
cat > "$PREFIX/etc/theanorc" <<END
# Theano's defaults in this environment. ~/.theanorc and THEANO_FLAGS override them.
[global]
cxx = $PREFIX/bin/x86_64-conda-linux-gnu-g++
device = $DEVICE
base_compiledir = ~/.theano/${STACK//_/-}

[blas]
ldflags = "-L$PREFIX/lib" $libraries

[cmodule]
shipped = $PREFIX/lib/theano-modules
END

case $LIBM in
    system) ;;
    amdlibm) printf '\n[lib]\namdlibm = True\n' >> "$PREFIX/etc/theanorc" ;;
    *) echo "theano-stack/build.sh has no settings for libm = $LIBM" >&2; exit 1 ;;
esac

case $DEVICE in
    cpu) ;;
    cuda)
        cat >> "$PREFIX/etc/theanorc" <<END

[cuda]
include_path = $PREFIX/include

[dnn]
include_path = $PREFIX/include
library_path = $PREFIX/lib
bin_path = $PREFIX/lib
END
        ;;
    *) echo "theano-stack/build.sh has no settings for device = $DEVICE" >&2; exit 1 ;;
esac

cat > "$PREFIX/etc/theano-fast.toml" <<END
stack = "${STACK//_/-}"

[axes]
theano = "$PKG_VERSION"
python = "3.11"
blas = "$BLAS"
libm = "$LIBM"
device = "$DEVICE"
END

# pip.conf (below) makes the environment's pip refuse other versions of these packages.
cat > "$PREFIX/etc/pip-constraints.txt" <<END
# The packages of this stack have these versions and share one BLAS. PyPI's wheels contain another BLAS.
$("$PREFIX/bin/python" -c '
from importlib.metadata import version
for name in "numpy", "scipy", "theano": print(f"{name} =={version(name)}")
')
# Allow only theano-fast's own package theano-pymc. Other releases would overwrite Theano's files.
theano-pymc ===1.1.2+theano.$PKG_VERSION
END
cat > "$PREFIX/pip.conf" <<END
[global]
constraint = $PREFIX/etc/pip-constraints.txt
END

directory="$PREFIX/share/modulefiles/theano-fast"
mkdir -p "$directory"
cat > "$directory/${STACK//_/-}" <<END
#%Module1.0
module-whatis "Theano $PKG_VERSION: $BLAS, libm $LIBM, device $DEVICE"
conflict theano-fast
prepend-path PATH {$PREFIX/bin}
END

mkdir "$PREFIX/lib/theano-modules"
HOME=$SRC_DIR THEANO_FLAGS=device=cpu \
    "$PREFIX/bin/python" shipped_modules.py "$PREFIX/lib/theano-modules"
