"""Run the project's linters and tests."""

from __future__ import annotations

import os

from builder.common import paths, processes
from builder.common.errors import CommandFailed
from builder.environment import envs, history
from builder.maintenance import compilers, patch_states, theano_changes
from builder.measure import document_tables
from builder.options import Options
from builder.pipeline import build_stack
from builder.proof.own_tests import Run, Suite
from builder.stack import stacks


def run_lint() -> None:
    """Run the linters; check generated documents, patch states and build numbers.

    Raises:
        CommandFailed: a linter failed, a generated document is outdated, or a patch state has an
            error.
        ConfigurationError: a package's bytes changed without a new build number.
    """
    scripts = [paths.ROOT / "invoke", *sorted((paths.ROOT / ".ci").iterdir())]
    scripts += sorted(paths.RECIPES.rglob("*.sh"))
    own_files = (paths.RECIPES / "theano" / "src").rglob("*")
    sources = sorted(file for file in own_files if file.suffix in (".c", ".cpp", ".h"))
    commands = [
        [_get_tool_path("ruff"), "check", "."],
        [_get_tool_path("ruff"), "format", "--check", "."],
        [_get_tool_path("mypy")],
        [_get_tool_path("shellcheck"), *map(str, scripts)],
        [_get_tool_path("clang-format"), "--dry-run", "--Werror", *map(str, sources)],
    ]
    if failed := [
        command for command in commands if processes.run_on_terminal(command, cwd=paths.ROOT) != 0
    ]:
        raise CommandFailed("failed: " + "; ".join(" ".join(command) for command in failed))
    document_tables.check()
    theano_changes.check()
    patch_states.check_statically()
    history.check_committed_locks()


def run_tests(unit: bool, select: str, *options: str) -> None:
    """Run the unit tests; then, unless ``unit``, build the openblas stack and test it.

    The tests of the runtime and of Theano's patches run in the stack's environment. The tests of
    GPU ops run in the cuda stack's environment, if it is built.

    Args:
        unit: run only the unit tests.
        select: pytest's -k expression.
        options: pytest's options that tests/conftest.py defines, such as ``--thorough``.

    Raises:
        CommandFailed: a test failed.
    """
    suites = [Suite("tests/unit", 20)] if unit else _list_suites()
    with Run(suites, select, *options) as tests:
        tests.run(*tests.groups[0])
        if not unit:
            build_stack("openblas", Options())
            # Tests run compilers and the program `patch`. The host may lack both.
            os.environ["PATH"] += f"{os.pathsep}{compilers.install()}"
            for group in tests.groups[1:]:
                tests.run(*group)


def _list_suites() -> list[Suite]:
    """List all suites, in the order in which they run."""
    requirement = "the openblas stack"
    if not envs.read_installed_digest("openblas"):
        requirement += ", which is built first: 15 to 20 minutes on two cores, from an empty cache"
    return [
        Suite("tests/unit", 20),
        Suite("tests/unit/runtime", 30, "openblas", requirement),
        Suite("tests/programs/corpus", 50, "openblas", requirement),
        Suite("tests/patches", 650, "openblas", requirement),
        # tests/patches and tests/integration use about one CPU each, so they run at the same time.
        Suite(
            *("tests/integration", 650),
            needs="images: a Docker daemon, or dockerd and root",
            concurrent=True,
        ),
        Suite(
            *("tests/cuda", 300, "cuda", "the cuda stack"),
            absent="" if envs.read_installed_digest("cuda") else "./invoke build --stack=cuda",
        ),
        *(_make_program_suite(name) for name in stacks.list_programs()),
        Suite("tests/cluster", 60, needs="Slurm and root; otherwise the tests are skipped"),
        Suite("tests/conda", 10, needs="conda and conda-build; otherwise most tests are skipped"),
    ]


def _make_program_suite(name: str) -> Suite:
    """Make the suite of a program that is installed with the openblas stack."""
    stack = f"openblas+{name}"
    absent = (
        ""
        if envs.read_installed_digest(stack)
        else f"./invoke build --stack=openblas --with={name}"
    )
    suite = (stacks.find_test_file(name), 30, stack)
    return Suite(*suite, f"the openblas stack with {name}", absent=absent)


def _get_tool_path(name: str) -> str:
    return str(paths.VENV / "bin" / name)
