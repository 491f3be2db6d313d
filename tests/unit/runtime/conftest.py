"""The runtime is not installed where the builder's tests run: take it from the checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
