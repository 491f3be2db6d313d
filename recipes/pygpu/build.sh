#!/bin/bash
set -euo pipefail

python3 unpack-debs.py
cp -r debian/usr/lib/python3/dist-packages/. "$SP_DIR"
