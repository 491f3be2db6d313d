"""Check that pip has not replaced the stack's Python packages that Theano needs.

The constraints file etc/pip-constraints.txt names the packages and their versions. By default, the
environment's pip reads this file, and refuses other versions.
"""

import re
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from theano_fast.checks.result import Options, Result

CONSTRAINTS = Path("etc", "pip-constraints.txt")
REMEDY = (
    "make a new environment; its pip keeps these packages unless PIP_CONSTRAINT or PIP_CONFIG_FILE"
    " is set"
)


class Constraint(NamedTuple):
    """The only version of a package that the environment may have."""

    name: str
    version: str
    # False for a package that only some environments have.
    required: bool


def run(options: Options) -> Result:
    """Compare the versions and installers of packages with the constraints."""
    constraints = parse_constraints(Path(sys.base_prefix, CONSTRAINTS).read_text())
    failures = tuple(filter(None, map(find_failure, constraints)))
    return Result(
        summary=", ".join(
            f"{name} {version}" for name, version, required in constraints if required
        ),
        failures=(*failures, REMEDY) if failures else (),
    )


def parse_constraints(text: str) -> list[Constraint]:
    """Parse a constraints file: ``==`` pins a required package, ``===`` an optional package."""
    rows = re.findall(r"^([\w.-]+) (===?)(\S+)$", text, re.MULTILINE)
    return [Constraint(name, version, operator == "==") for name, operator, version in rows]


def find_failure(constraint: Constraint) -> str:
    """Return the failure of a package, "" if conda installed exactly the stack's version."""
    name, version, required = constraint
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return f"the stack's {name} {version} is not installed" if required else ""
    installer = (package.read_text("INSTALLER") or "an unknown tool").strip()
    if (package.version, installer) == (version, "conda"):
        return ""
    return f"{name} {package.version}, installed by {installer}, is not the stack's {version}"
