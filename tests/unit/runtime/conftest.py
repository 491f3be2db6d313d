"""Import theano_fast from runtime/, because the builder's Python does not have the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
