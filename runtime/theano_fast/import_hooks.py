"""Hook into an import: call a function with the module after the module's code has run."""

import importlib.machinery
import importlib.util
from collections.abc import Callable
from types import ModuleType


def find_spec_and_run(
    name: str, action: Callable[[ModuleType], None]
) -> importlib.machinery.ModuleSpec | None:
    """Return a module's spec, whose loader executes the module, then calls ``action(module)``.

    A finder of sys.meta_path calls this function in its ``find_spec``. This function searches all
    finders again, so the calling finder must then return None for ``name``.

    Args:
        name: the module's full name.
        action: the function to call.

    Returns:
        the spec, or None if no finder finds the module.
    """
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def execute_and_run(module: ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = execute_and_run  # type: ignore[method-assign]
    return spec
