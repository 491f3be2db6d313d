"""Run the command ``python -m ensurepip``, with the options of CPython's ensurepip."""

import argparse
import subprocess
import sys

import ensurepip


def main() -> int:
    """Install pip; return pip's exit status."""
    parser = argparse.ArgumentParser(prog="python -m ensurepip")
    parser.add_argument("--version", action="version", version=f"pip {ensurepip.version()}")
    parser.add_argument("-v", "--verbose", action="count", default=0, dest="verbosity")
    parser.add_argument("-U", "--upgrade", action="store_true")
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--root", help="install below this directory")
    parser.add_argument("--altinstall", action="store_true", help="install only the command pipX.Y")
    parser.add_argument("--default-pip", action="store_true", help="also install the command pip")
    options = parser.parse_args()
    try:
        ensurepip.bootstrap(**vars(options))
    except ValueError as error:
        parser.error(str(error))
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
