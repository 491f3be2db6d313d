"""Test the order of builds and test suites, and the files that lint checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths, processes
from builder.environment import envs, history
from builder.maintenance import checks, patch_states
from builder.proof.own_tests import Run


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace builds and test suites; return their names in order. No stack is built yet."""
    commands: list[str] = []
    monkeypatch.setattr(envs, "read_installed_digest", lambda _: None)
    monkeypatch.setattr(checks, "build_stack", lambda stack, _: commands.append(f"build {stack}"))
    monkeypatch.setattr(checks.compilers, "install", lambda: Path("/compilers/bin"))
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(Run, "run", lambda _, *group: commands.append(", ".join(map(str, group))))
    return commands


def test_unit_tests_build_nothing(actions: list[str]) -> None:
    checks.run_tests(unit=True, select="")
    assert actions == ["tests/unit"]


def test_options_reach_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    selections: list[tuple[str, ...]] = []
    monkeypatch.setattr(Run, "run", lambda self, *_: selections.append(self.selection))
    checks.run_tests(True, "scan", "--turn=3")
    assert selections == [("-k", "scan", "--turn=3")]


def test_the_stack_is_built_before_it_is_tested(
    actions: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    checks.run_tests(unit=False, select="")
    assert actions == [
        "tests/unit",
        "build openblas",
        "tests/unit/runtime in openblas",
        "tests/programs/corpus in openblas",
        "tests/patches in openblas, tests/integration",
        "tests/cluster",
        "tests/conda",
    ]
    plan = capsys.readouterr().out
    assert "built first" in plan
    assert "./invoke build --stack=cuda" in plan


def test_the_tests_of_a_built_cuda_stack_run(
    actions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envs, "read_installed_digest", lambda _: "lock")
    checks.run_tests(unit=False, select="")
    assert "tests/cuda in cuda" in actions


def test_lint_checks_theanos_c_files_in_all_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: dict[str, list[str]] = {}

    def run(command: list[str], **_: Path) -> int:
        commands[Path(command[0]).name] = command[1:]
        return 0

    monkeypatch.setattr(processes, "run_on_terminal", run)
    monkeypatch.setattr(history, "check_committed_locks", lambda: None)
    monkeypatch.setattr(patch_states, "check_statically", lambda: None)
    checks.run_lint()
    source = paths.RECIPES / "theano" / "src" / "theano"
    for name in (
        "gof/c_code/theano_loops.h",
        "gpuarray/c_code/dnn_rnn_base.c",
        "scan_module/c_code/scan_steps.c",
        "tensor/c_code/thunks/thunk.h",
        "tensor/c_code/thunks_ext.cpp",
    ):
        assert str(source / name) in commands["clang-format"]
