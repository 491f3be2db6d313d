"""Which tests are run, and on what."""

from __future__ import annotations

import pytest

from builder import checks, envs, pipeline
from builder.testing import Run


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was built and run: nothing is, and no stack was."""
    told: list[str] = []
    monkeypatch.setattr(envs, "installed", lambda _: None)
    monkeypatch.setattr(pipeline, "build", lambda stack, _: told.append(f"build {stack}"))
    monkeypatch.setattr(Run, "run", lambda _, suite: told.append(str(suite)))
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
        "tests/patches in openblas",
        "tests/integration",
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
