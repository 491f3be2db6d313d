"""Run the command ``theano-fast`` as ``python -m theano_fast``."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - another Python finds this file by PYTHONPATH
    sys.exit(
        f"theano-fast: {sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}, not"
        " the Python of a theano-fast environment: run its bin/python, or a virtual environment"
        " made with its bin/python -m venv DIR"
    )

from theano_fast.cli import main

sys.exit(main())
