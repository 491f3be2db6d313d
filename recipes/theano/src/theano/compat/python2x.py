"""Names that Theano 0.6 to 0.8 defined for Python 2.4 to 2.7, now from the standard library."""

from builtins import all, any
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import MutableMapping as DictMixin
from functools import partial
from itertools import combinations, product
from sys import maxsize

__all__ = [
    "Counter",
    "DictMixin",
    "OrderedDict",
    "all",
    "any",
    "combinations",
    "defaultdict",
    "deque",
    "maxsize",
    "partial",
    "product",
]
