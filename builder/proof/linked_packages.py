"""Provide pytest and nose to an interpreter without them, through a directory on PYTHONPATH."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

from builder.source import sources
from builder.stack.recipes import Source

# pytest with its dependencies, and parameterized, which Theano's tests import.
PYTEST = (
    *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"),
    "parameterized",
)
# The test runner of Theano 0.8.2, for Python 2.7.
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


def link_packages(directory: Path, *names: str) -> None:
    """Create links in ``directory`` to packages and modules of this Python, for a PYTHONPATH."""
    for name in names:
        module = importlib.util.find_spec(name)
        assert module is not None
        assert module.origin is not None
        file = Path(module.origin)
        # Link the directory of a package, or the file of a module.
        path = file.parent if file.name == "__init__.py" else file
        # Link the metadata too: pytest reads its own and pluggy's.
        for part in (path, *path.parent.glob(f"{name}-*.dist-info")):
            (directory / part.name).symlink_to(part)


def unpack_nose(directory: Path) -> None:
    """Unpack nose into ``directory``, for a PYTHONPATH of Python 2.7.

    Raises:
        SourceUnavailable: nose cannot be downloaded.
        HashMismatch: the file does not have the pinned SHA-256.
    """
    for wheel in sources.fetch(NOSE):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(directory)
