"""Aliases of theano.gpuarray and its modules under their old names in Theano 0.6 to 0.9.

``import theano.sandbox.gpuarray.dnn`` imports theano.gpuarray.dnn.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from theano import gpuarray

_OLD_PREFIX = f"{__name__}."


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import finder and loader that maps theano.sandbox.gpuarray.NAME to theano.gpuarray.NAME."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec if the module is below theano.sandbox.gpuarray, otherwise None."""
        if not fullname.startswith(_OLD_PREFIX):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new, empty module in sys.modules with the module of theano.gpuarray."""
        name = module.__name__
        new_name = f"theano.gpuarray.{name.removeprefix(_OLD_PREFIX)}"
        sys.modules[name] = importlib.import_module(new_name)


sys.meta_path.insert(0, _Alias())
sys.modules[__name__] = gpuarray
