#!/bin/bash
set -euo pipefail

directory="$PREFIX/lib/python3.11/ensurepip"
mkdir -p "$directory/wheels"
cp __init__.py __main__.py "$directory"

# `wheel pack` writes this time into the wheels.
export SOURCE_DATE_EPOCH=315532800
# setuptools contains the package wheel.
vendored=$("$PYTHON" -c 'import setuptools; print(setuptools.__path__[0])')/_vendor
# pack NAME FILE...: make a wheel from the files of an installed package.
pack() {
    name=$1
    shift
    mkdir "$name"
    (cd "$SP_DIR" && cp -r "$@" "$name"-*.dist-info "$OLDPWD/$name")
    find "$name" -name __pycache__ -prune -exec rm -r {} +
    # These files describe the installation, not the wheel.
    rm -f "$name"/*.dist-info/{INSTALLER,REQUESTED,direct_url.json}
    # The wheel contains permissions, which depend on the umask.
    chmod -R u=rwX,go=rX "$name"
    PYTHONPATH=$vendored "$PYTHON" -m wheel pack --dest-dir "$directory/wheels" "$name"
}
pack pip pip
pack setuptools setuptools pkg_resources _distutils_hack distutils-precedence.pth
"$PYTHON" -c 'import pip; print(pip.__version__)' > "$directory/pip-version"
