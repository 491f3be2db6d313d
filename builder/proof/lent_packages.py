"""Pure Python packages lent to an interpreter that has them not: the builder's own, and nose."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

from builder.source import sources
from builder.stack.recipes import Source

# With what it needs, and what Theano's own tests need beside it.
PYTEST = (
    *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"),
    "parameterized",
)
# For Python 2.7: what Theano 0.8.2's own tests were written for.
NOSE = (
    Source(
        "nose-1.3.7-py2-none-any.whl",
        "dadcddc0aefbf99eea214e0f1232b94f2fa9bd98fa8353711dacb112bfcbbb2a",
    ),
    Source(
        "nose_parameterized-0.5.0-py2.py3-none-any.whl",
        "4894a5de42ccecad05e265352ff34bd148e813f3ed06b5950660ded07f399e9b",
    ),
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


def lend_nose(directory: Path) -> None:
    """Unpack nose into ``directory``, for a PYTHONPATH of Python 2.7.

    Raises:
        SourceUnavailable: it is nowhere to be had.
        HashMismatch: it is not the pinned one.
    """
    for wheel in sources.fetch(NOSE):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(directory)
