#!/bin/bash
set -euo pipefail

case $BLAS in
    numpy) ldflags= ;;
    openblas) ldflags="-L$PREFIX/lib -lopenblas" ;;
    # Link first to libblas.so.3, which runs small products on one thread (recipes/blas/mkl.c).
    mkl) ldflags="-L$PREFIX/lib -l:libblas.so.3 -lmkl_intel_lp64 -lmkl_gnu_thread -lmkl_core -lgomp" ;;
    *) echo "theano-stack-0.8/build.sh has no link flags for blas = $BLAS" >&2; exit 1 ;;
esac

mkdir -p "$PREFIX/etc"
cat > "$PREFIX/etc/theanorc" <<END
# Theano's defaults in this environment. ~/.theanorc and THEANO_FLAGS override them.
[global]
cxx = $PREFIX/bin/x86_64-conda-linux-gnu-g++
base_compiledir = ~/.theano/${STACK//_/-}

[blas]
ldflags = $ldflags
END

case $LIBM in
    system) ;;
    amdlibm) printf '\n[lib]\namdlibm = True\n' >> "$PREFIX/etc/theanorc" ;;
    *) echo "theano-stack-0.8/build.sh has no settings for libm = $LIBM" >&2; exit 1 ;;
esac

cat > "$PREFIX/etc/theano-fast.toml" <<END
stack = "${STACK//_/-}"

[axes]
theano = "$PKG_VERSION"
python = "2.7"
blas = "$BLAS"
libm = "$LIBM"
device = "cpu"
END

# pip must not change these versions in the environment.
cat > "$PREFIX/etc/pip-constraints.txt" <<END
# Theano computes with the BLAS of these packages.
numpy ==1.13.3
scipy ==0.19.1
theano ==$PKG_VERSION
END
cat > "$PREFIX/pip.conf" <<END
[global]
constraint = $PREFIX/etc/pip-constraints.txt
disable-pip-version-check = true
END

directory="$PREFIX/share/modulefiles/theano-fast"
mkdir -p "$directory"
cat > "$directory/${STACK//_/-}" <<END
#%Module1.0
module-whatis "Theano $PKG_VERSION: $BLAS, libm $LIBM"
conflict theano-fast
prepend-path PATH {$PREFIX/bin}
END
