# The extension module of thunks_ext.cpp, which contains precompiled thunks.

from types import ModuleType
from typing import Any

import numpy as np

make_module: object
op_size: int

def make_thunk(
    name: str,
    op: np.ndarray,
    types: np.ndarray,
    failure: int,
    error: list[Any],
    inputs: tuple[list[Any], ...],
    outputs: tuple[list[Any], ...],
    /,
) -> object: ...
def set_loops(op: int, module: ModuleType, /) -> None: ...
def module_of(name: str, op: int, /) -> ModuleType: ...
def make_replay(
    variables: list[tuple[object, ...]], nodes: list[tuple[object, ...]], /
) -> object: ...
def forget(replay: object, /) -> tuple[int, int]: ...
def set_threads(number: int, /) -> None: ...
def enable_products(enabled: bool, /) -> bool: ...
