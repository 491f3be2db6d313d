"""Provide theano.gpuarray and its modules under their names in Theano 0.6 to 0.9."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from theano import gpuarray

_OLD = f"{__name__}."


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import finder that returns today's module for its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for a module of the old package, otherwise None."""
        if not fullname.startswith(_OLD):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new, empty module by today's module."""
        name = module.__name__
        sys.modules[name] = importlib.import_module(f"theano.gpuarray.{name.removeprefix(_OLD)}")


sys.meta_path.insert(0, _Alias())
sys.modules[__name__] = gpuarray
