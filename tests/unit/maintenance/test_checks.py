"""What lint looks at; which tests are run, and on what."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder import pipeline
from builder.common import paths, processes
from builder.environment import envs, history
from builder.maintenance import checks
from builder.proof.own_tests import Run


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was built and run: nothing is, and no stack was."""
    told: list[str] = []
    monkeypatch.setattr(envs, "installed", lambda _: None)
    monkeypatch.setattr(pipeline, "build", lambda stack, _: told.append(f"build {stack}"))
    monkeypatch.setattr(pipeline, "compilers", lambda: Path("/compilers/bin"))
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(Run, "run", lambda _, *group: told.append(", ".join(map(str, group))))
    return told


def test_units_build_nothing(happened: list[str]) -> None:
    checks.test(unit=True, select="")
    assert happened == ["tests/unit"]


def test_the_stack_is_built_before_it_is_tested(
    happened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    checks.test(unit=False, select="")
    assert happened == [
        "tests/unit",
        "build openblas",
        "tests/unit/runtime in openblas",
        "tests/patches in openblas, tests/integration",
        "tests/cluster",
        "tests/conda",
    ]
    plan = capsys.readouterr().out
    assert "built first" in plan
    assert "./invoke build --stack=cuda" in plan


def test_the_tests_of_a_built_cuda_stack_run(
    happened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envs, "installed", lambda _: "lock")
    checks.test(unit=False, select="")
    assert "tests/cuda in cuda" in happened


def test_lint_looks_at_all_of_theanos_c(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: dict[str, list[str]] = {}

    def show(command: list[str], **_: Path) -> int:
        commands[Path(command[0]).name] = command[1:]
        return 0

    monkeypatch.setattr(processes, "show", show)
    monkeypatch.setattr(history, "check", lambda: None)
    checks.lint()
    source = paths.RECIPES / "theano" / "src" / "theano"
    for name in (
        "gof/c_code/theano_loops.h",
        "gpuarray/c_code/dnn_rnn_base.c",
        "scan_module/c_code/scan_steps.c",
        "tensor/c_code/thunks/thunk.h",
        "tensor/c_code/thunks_ext.cpp",
    ):
        assert str(source / name) in commands["clang-format"]
