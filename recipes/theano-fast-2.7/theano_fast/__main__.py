"""``python -m theano_fast``: the command theano-fast."""

import sys

from theano_fast.cli import main

sys.exit(main())
