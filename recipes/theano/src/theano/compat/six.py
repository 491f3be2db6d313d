"""Alias of six, with ``six.moves``, for programs that import it from here, as in Theano 0.6 to 0.9.

The code of six is executed in this module. Thus six's importer serves ``theano.compat.six.moves``.
"""

from importlib.util import find_spec
from typing import Any

_specification = find_spec("six")
if _specification is None:
    raise ImportError("theano.compat.six needs the package six")
_loader: Any = _specification.loader
exec(_loader.get_code("six"))
