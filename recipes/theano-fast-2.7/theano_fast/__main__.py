"""Run the command theano-fast as ``python -m theano_fast``."""

import sys

from theano_fast.cli import main

sys.exit(main())
