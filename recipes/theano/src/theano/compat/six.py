"""Provide six under its name in Theano 0.6 to 0.9, with all modules of ``six.moves``.

The code of six runs in this module: its own importer then serves ``theano.compat.six.moves``.
"""

from importlib.util import find_spec
from typing import Any

_specification = find_spec("six")
if _specification is None:
    raise ImportError("theano.compat.six needs the package six")
_loader: Any = _specification.loader
exec(_loader.get_code("six"))
