"""The project's own checks: lint and tests."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from builder import envs, paths, pipeline, run
from builder.errors import CommandFailed
from builder.lending import PYTEST, lend

# pytest's exit code if no test was.
NOTHING_SELECTED = 5


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

    The tests of the runtime and of Theano's patches run in the environment's own interpreter,
    those of the GPU's ops in the cuda stack's, if that is built.

    Args:
        select: pytest's -k expression; a part in which it selects nothing passes.

    Raises:
        CommandFailed: a test failed.
    """
    options = ["-k", select] if select else []
    passing = (0, NOTHING_SELECTED) if select else (0,)
    pytest = [sys.executable, "-m", "pytest", *options]
    _each([[*pytest, "tests/unit"]], passing)
    if unit:
        return
    pipeline.build("openblas", pipeline.Options())
    # Those of the runtime that need numpy are skipped above.
    within = {"openblas": ["tests/unit/runtime", "tests/patches"]}
    if envs.installed("cuda"):
        within["cuda"] = ["tests/cuda"]
    with tempfile.TemporaryDirectory() as lent:
        lend(Path(lent), *PYTEST)
        pythons = {name: str(paths.ENVIRONMENTS / name / "bin" / "python") for name in within}
        _each(
            [[pythons[name], "-m", "pytest", *options, *tests] for name, tests in within.items()],
            passing,
            PYTHONPATH=lent,
        )
    _each([[*pytest, "tests/integration"]], passing)


def _tool(name: str) -> str:
    return str(paths.VENV / "bin" / name)


def _each(commands: list[list[str]], passing: tuple[int, ...] = (0,), **env: str) -> None:
    failed = [
        command
        for command in commands
        if run.show(command, cwd=paths.ROOT, env={**os.environ, **env}) not in passing
    ]
    if failed:
        raise CommandFailed("failed: " + "; ".join(" ".join(command) for command in failed))
