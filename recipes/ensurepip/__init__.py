"""Install pip in a virtual environment, and show it the packages of the environment it is made in.

``python -m venv`` calls it, except with ``--without-pip``. In a virtual environment it also lets
Python see the environment's packages, Theano among them, as ``--system-site-packages`` does; makes
pip keep them, by a pip.conf; and writes the command theano-fast.
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
    """Return the version of the pip that is installed."""
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
    """Install pip and setuptools; the arguments are those of Python's ensurepip.

    Raises:
        ValueError: altinstall and default_pip exclude each other.
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
    # The user's settings are for what the user installs.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ["PIP_CONFIG_FILE"] = os.devnull
    if not default_pip:
        # pip reads it, and leaves out the commands pip, or pip and pip3.
        environ["ENSUREPIP_OPTIONS"] = "altinstall" if altinstall else "install"
    path = [str(wheel) for wheel in sorted(wheels.glob("*.whl"))]
    code = (
        f"import sys; sys.path[:0] = {path!r};"
        f" from pip._internal.cli.main import main; sys.exit(main({arguments!r}))"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-I", "-c", code]
    subprocess.run(command, env=environ, check=True)
    if sys.prefix != sys.base_prefix:
        show_environment(Path(sys.prefix), Path(sys.base_prefix))


def show_environment(venv: Path, environment: Path) -> None:
    """Let a virtual environment use the packages of the environment that it was made in."""
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
