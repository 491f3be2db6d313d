"""Pure Python packages of the builder's own, lent to an interpreter that has them not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

# With what it needs, and what Theano's own tests need beside it.
PYTEST = (
    *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"),
    "parameterized",
)


def lend(directory: Path, *names: str) -> None:
    """Link importable packages and modules into ``directory``, for a PYTHONPATH."""
    for name in names:
        module = importlib.util.find_spec(name)
        assert module is not None
        assert module.origin is not None
        file = Path(module.origin)
        # A package is its directory, a module its file.
        found = file.parent if file.name == "__init__.py" else file
        # pytest also asks for its own and pluggy's metadata.
        for part in (found, *found.parent.glob(f"{name}-*.dist-info")):
            (directory / part.name).symlink_to(part)
