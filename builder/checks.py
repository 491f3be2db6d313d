"""The project's own checks: lint and tests."""

from __future__ import annotations

import sys

from builder import paths, pipeline, run
from builder.errors import CommandFailed


def lint() -> None:
    """Run ruff, mypy and shellcheck over the project.

    Raises:
        CommandFailed: one of them found something.
    """
    scripts = [paths.ROOT / "invoke", paths.ROOT / ".ci" / "run"]
    scripts += sorted(paths.RECIPES.glob("*/*.sh"))
    _each(
        [
            [_tool("ruff"), "check", "."],
            [_tool("ruff"), "format", "--check", "."],
            [_tool("mypy")],
            [_tool("shellcheck"), *map(str, scripts)],
        ]
    )


def test(unit: bool, select: str) -> None:
    """Run the unit tests; then, unless ``unit``, build the openblas stack and test it.

    Raises:
        CommandFailed: a test failed.
    """
    pytest = [sys.executable, "-m", "pytest", *(["-k", select] if select else [])]
    _each([[*pytest, "tests/unit"]])
    if not unit:
        pipeline.build("openblas", pipeline.Options())
        _each([[*pytest, "tests/integration"]])


def _tool(name: str) -> str:
    return str(paths.VENV / "bin" / name)


def _each(commands: list[list[str]]) -> None:
    failed = [command for command in commands if run.show(command, cwd=paths.ROOT) != 0]
    if failed:
        raise CommandFailed("failed: " + "; ".join(" ".join(command) for command in failed))
