"""The Python packages that Theano leans on are the stack's own: none took the place of one.

The stack's constraints name them, which the environment's pip obeys unless it is told otherwise.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

from theano_fast.checks.result import Options, Result

CONSTRAINTS = Path("etc", "pip-constraints.txt")
REMEDY = (
    "make the environment anew: its pip keeps them, unless PIP_CONSTRAINT or PIP_CONFIG_FILE is set"
)


def run(options: Options) -> Result:
    """Hold what is installed against the constraints."""
    constraints = parse(Path(sys.prefix, CONSTRAINTS).read_text())
    failures = tuple(found for row in constraints.items() if (found := wrong(*row)))
    return Result(
        summary=", ".join(f"{name} {own}" for name, own in constraints.items() if own),
        failures=(*failures, REMEDY) if failures else (),
    )


def parse(text: str) -> dict[str, str]:
    """Return the versions of the stack's packages by name; "" for what it cannot have."""
    return dict(re.findall(r"^([\w.-]+) (?:==(\S+)|<0)$", text, re.MULTILINE))


def wrong(name: str, own: str) -> str:
    """Return what is wrong with the package of a name that is installed, if something is."""
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return own and f"{name} {own} of the stack is gone"
    if not own:
        return f"{name} {package.version} writes over files of the stack's"
    by = (package.read_text("INSTALLER") or "another").strip()
    if (package.version, by) == (own, "conda"):
        return ""
    return f"{name} {package.version}, by {by}, is not the stack's {own}"
