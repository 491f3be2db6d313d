"""Import hook: run a function on a module right after the module's code."""

import importlib.machinery
import importlib.util
from collections.abc import Callable
from types import ModuleType


def find_spec_and_run(
    name: str, action: Callable[[ModuleType], None]
) -> importlib.machinery.ModuleSpec | None:
    """Return a module's spec, whose loader calls ``action`` with the module after its execution.

    A finder calls this function in its ``find_spec``, and must not find this name a second time.
    """
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def execute_and_run(module: ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = execute_and_run  # type: ignore[method-assign]
    return spec
