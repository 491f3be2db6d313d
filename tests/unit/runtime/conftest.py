"""Import the runtime from the checkout, because the builder's Python does not have it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
