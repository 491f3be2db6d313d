#!/bin/bash
set -euo pipefail

ar p ./*.deb data.tar.xz | tar -xJ
cp -r usr/lib/python3/dist-packages/. "$SP_DIR"
