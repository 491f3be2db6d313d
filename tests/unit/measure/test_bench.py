from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import EnvironmentFailed, UsageError
from builder.environment import envs
from builder.measure import bench, references
from builder.pipeline import Options


def test_references_are_made_and_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def create(name: str, options: Options) -> Path:
        made.append(name)
        return Path(name)

    monkeypatch.setattr(envs, "installed", lambda name: "digest")
    monkeypatch.setattr(references, "create", create)
    assert bench.prepare(["openblas", "mkl"], ["jax"]) == ["stock", "jax", "openblas", "mkl"]
    assert made == ["stock", "jax"]


def test_a_stack_is_not_built_for_a_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    with pytest.raises(EnvironmentFailed, match="invoke build --stack=mkl"):
        bench.prepare(["mkl"], [])
    with pytest.raises(UsageError, match="unknown stack 'stock'"):
        bench.prepare(["stock"], [])


def test_a_measured_program_sees_no_settings_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BENCHES", tmp_path)
    monkeypatch.setenv("THEANO_FLAGS", "optimizer=None")
    home = bench.home("stock", "mlp")
    assert home.is_dir()
    variables = bench.variables(home)
    assert variables["HOME"] == str(home)
    assert "THEANO_FLAGS" not in variables
    assert "PATH" in variables
