"""Install pip in a virtual environment, and connect the virtual environment to its environment.

``python -m venv`` calls this module, except with ``--without-pip``. In a virtual environment,
Python can then import the environment's packages, such as Theano. The option
``--system-site-packages`` has the same effect. A pip.conf names the environment's constraints file,
so pip does not replace NumPy, SciPy or Theano. The virtual environment also gets the command
theano-fast.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COMMAND = """\
#!/bin/sh
exec "${0%/*}/python" -P -m theano_fast "$@"
"""


def version() -> str:
    """Return the version of the pip that ``bootstrap`` installs."""
    return (HERE / "pip-version").read_text().strip()


def bootstrap(
    *,
    root: str | None = None,
    upgrade: bool = False,
    user: bool = False,
    altinstall: bool = False,
    default_pip: bool = False,
    verbosity: int = 0,
) -> None:
    """Install pip and setuptools; accept the parameters of CPython's ``ensurepip.bootstrap``.

    Raises:
        ValueError: both altinstall and default_pip are true.
        subprocess.CalledProcessError: pip failed.
    """
    if altinstall and default_pip:
        raise ValueError("Cannot use altinstall and default_pip together")
    wheels = HERE / "wheels"
    arguments = ["install", "--no-cache-dir", "--no-index", "--find-links", str(wheels)]
    arguments += ["--root", root] if root else []
    arguments += ["--upgrade"] if upgrade else []
    arguments += ["--user"] if user else []
    arguments += ["-" + "v" * verbosity] if verbosity else []
    arguments += ["pip", "setuptools"]
    # Ignore the user's settings of pip: they could refer to another directory or index.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ["PIP_CONFIG_FILE"] = os.devnull
    if not default_pip:
        # With this variable, pip omits the command pip; with altinstall, also the command pip3.
        environ["ENSUREPIP_OPTIONS"] = "altinstall" if altinstall else "install"
    path = [str(wheel) for wheel in sorted(wheels.glob("*.whl"))]
    code = (
        f"import sys; sys.path[:0] = {path!r};"
        f" from pip._internal.cli.main import main; sys.exit(main({arguments!r}))"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-I", "-c", code]
    subprocess.run(command, env=environ, check=True)
    if sys.prefix != sys.base_prefix:
        connect_to_environment(Path(sys.prefix), Path(sys.base_prefix))


def connect_to_environment(venv: Path, environment: Path) -> None:
    """Write pyvenv.cfg, pip.conf and the command theano-fast of a virtual environment.

    Args:
        venv: the directory of the virtual environment.
        environment: the prefix of the environment that has the virtual environment's Python.
    """
    settings = venv / "pyvenv.cfg"
    settings.write_text(
        settings.read_text().replace(
            "include-system-site-packages = false", "include-system-site-packages = true"
        )
    )
    pip_settings = venv / "pip.conf"
    if not pip_settings.exists():
        constraints = environment / "etc" / "pip-constraints.txt"
        pip_settings.write_text(f"[global]\nconstraint = {constraints}\n")
    command = venv / "bin" / "theano-fast"
    command.write_text(COMMAND)
    command.chmod(0o755)
