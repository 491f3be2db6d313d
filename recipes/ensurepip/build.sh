#!/bin/bash
set -euo pipefail

directory="$PREFIX/lib/python3.11/ensurepip"
mkdir -p "$directory/wheels"
cp __init__.py __main__.py "$directory"

# wheel takes the time from this variable.
export SOURCE_DATE_EPOCH=315532800
pack() {
    name=$1
    shift
    mkdir "$name"
    (cd "$SP_DIR" && cp -r "$@" "$name"-*.dist-info "$OLDPWD/$name")
    find "$name" -name __pycache__ -prune -exec rm -r {} +
    # The installer of this package, not of the wheel.
    rm -f "$name"/*.dist-info/{INSTALLER,REQUESTED,direct_url.json}
    # A wheel records the files' permissions, which follow the umask.
    chmod -R u=rwX,go=rX "$name"
    "$PYTHON" -m wheel pack --dest-dir "$directory/wheels" "$name"
}
pack pip pip
pack setuptools setuptools pkg_resources _distutils_hack distutils-precedence.pth
"$PYTHON" -c 'import pip; print(pip.__version__)' > "$directory/pip-version"
