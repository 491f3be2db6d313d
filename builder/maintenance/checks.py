"""The project's own checks: lint and tests."""

from __future__ import annotations

import os

from builder import pipeline
from builder.common import paths, processes
from builder.common.errors import CommandFailed
from builder.environment import envs, history
from builder.proof.own_tests import Run, Suite
from builder.stack import stacks


def lint() -> None:
    """Run ruff, mypy, shellcheck and clang-format, and see that build numbers have risen.

    Raises:
        CommandFailed: one of them found something.
        ConfigurationError: a package's bytes changed, and its name did not.
    """
    scripts = [paths.ROOT / "invoke", *sorted((paths.ROOT / ".ci").iterdir())]
    scripts += sorted(paths.RECIPES.rglob("*.sh"))
    ours = (paths.RECIPES / "theano" / "src").rglob("*")
    sources = sorted(file for file in ours if file.suffix in (".c", ".cpp", ".h"))
    commands = [
        [_tool("ruff"), "check", "."],
        [_tool("ruff"), "format", "--check", "."],
        [_tool("mypy")],
        [_tool("shellcheck"), *map(str, scripts)],
        [_tool("clang-format"), "--dry-run", "--Werror", *map(str, sources)],
    ]
    if failed := [command for command in commands if processes.show(command, cwd=paths.ROOT) != 0]:
        raise CommandFailed("failed: " + "; ".join(" ".join(command) for command in failed))
    history.check()


def test(unit: bool, select: str) -> None:
    """Run the unit tests; then, unless ``unit``, build the openblas stack and test it.

    The tests of the runtime and of Theano's patches run in the environment's own interpreter,
    those of the GPU's ops in the cuda stack's, if that is built.

    Args:
        select: pytest's -k expression; a part in which it selects nothing passes.

    Raises:
        CommandFailed: a test failed.
    """
    suites = [Suite("tests/unit", 20)] if unit else _suites()
    with Run(suites, select) as tests:
        tests.run(*tests.groups[0])
        if not unit:
            pipeline.build("openblas", pipeline.Options())
            # For what tests compile, and the patches that they take back, where the host has none.
            os.environ["PATH"] += f"{os.pathsep}{pipeline.compilers()}"
            for group in tests.groups[1:]:
                tests.run(*group)


def _suites() -> list[Suite]:
    """All there are, in the order in which they run."""
    stack = "the openblas stack"
    if not envs.installed("openblas"):
        stack += ", which is built first: up to an hour"
    return [
        Suite("tests/unit", 20),
        Suite("tests/unit/runtime", 30, "openblas", stack),
        Suite("tests/patches", 800, "openblas", stack),
        # Each keeps about one processor busy.
        Suite(
            *("tests/integration", 900),
            needs="images: a Docker daemon, or dockerd and root",
            beside=True,
        ),
        Suite(
            *("tests/cuda", 60, "cuda", "the cuda stack"),
            absent="" if envs.installed("cuda") else "./invoke build --stack=cuda",
        ),
        *(_program(name) for name in stacks.programs()),
        Suite("tests/cluster", 60, needs="Slurm and root; skipped without"),
        Suite("tests/conda", 10, needs="conda and conda-build; most are skipped without"),
    ]


def _program(name: str) -> Suite:
    """The tests of a program beside the openblas stack."""
    stack = f"openblas+{name}"
    absent = "" if envs.installed(stack) else f"./invoke build --stack=openblas --with={name}"
    part = (stacks.tests(name), 30, stack)
    return Suite(*part, f"the openblas stack with {name}", absent=absent)


def _tool(name: str) -> str:
    return str(paths.VENV / "bin" / name)
