"""SciPy, imported when one of its attributes is used for the first time."""

import importlib.util
from typing import Any

if importlib.util.find_spec("scipy") is None:
    raise ImportError("SciPy is missing")


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy"), name)
