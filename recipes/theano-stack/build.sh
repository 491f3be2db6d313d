#!/bin/bash
set -euo pipefail

case $BLAS in
    openblas) libraries=-lopenblas ;;
    # First the library that runs small products on one thread: recipes/blas/mkl.c.
    mkl) libraries="-l:libblas.so.3 -lmkl_intel_lp64 -lmkl_gnu_thread -lmkl_core -lgomp" ;;
    *) echo "no link flags are known for blas = $BLAS" >&2; exit 1 ;;
esac

mkdir -p "$PREFIX/etc"
cat > "$PREFIX/etc/theanorc" <<END
# Theano's defaults in this environment; ~/.theanorc and THEANO_FLAGS come before them.
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
    *) echo "no settings are known for libm = $LIBM" >&2; exit 1 ;;
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
    *) echo "no settings are known for device = $DEVICE" >&2; exit 1 ;;
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

# What the environment's pip leaves as it is.
cat > "$PREFIX/etc/pip-constraints.txt" <<END
# Theano is compiled against these, and computes in their BLAS.
$("$PREFIX/bin/python" -c '
from importlib.metadata import version
for name in "numpy", "scipy", "theano": print(f"{name} =={version(name)}")
')
# Any other release would write over Theano: it is recipes/theano-pymc or none.
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
