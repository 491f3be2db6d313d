"""Run the command ``theano-fast`` as ``python -m theano_fast``."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - PYTHONPATH may select an older Python
    sys.exit(
        f"theano-fast: {sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}, not"
        " the Python of a theano-fast environment: run the environment's bin/python, or the Python"
        " of a virtual environment that the environment's bin/python -m venv DIR created"
    )

from theano_fast.cli import main

sys.exit(main())
