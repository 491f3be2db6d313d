"""Test the selection of measured environments, and the variables of their programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import EnvironmentFailed, UsageError
from builder.environment import envs
from builder.measure import bench, references
from builder.options import Options


def test_references_come_first_and_stock_can_be_omitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed: list[str] = []

    def create(name: str, options: Options) -> Path:
        installed.append(name)
        return Path(name)

    monkeypatch.setattr(envs, "read_installed_digest", lambda name: "digest")
    monkeypatch.setattr(references, "install_reference", create)
    assert bench.prepare_environments(["openblas", "mkl"], ["jax"]) == [
        "stock",
        "jax",
        "openblas",
        "mkl",
    ]
    assert installed == ["stock", "jax"]
    assert bench.prepare_environments(["mkl"], ["jax"], stock=False) == ["jax", "mkl"]
    assert installed == ["stock", "jax", "jax"]


def test_a_measurement_requires_a_built_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    with pytest.raises(EnvironmentFailed, match="invoke build --stack=mkl"):
        bench.prepare_environments(["mkl"], [])
    with pytest.raises(UsageError, match="unknown stack 'stock'"):
        bench.prepare_environments(["stock"], [])


def test_a_measured_program_gets_a_new_home_and_not_the_users_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BENCHES", tmp_path)
    monkeypatch.setenv("THEANO_FLAGS", "optimizer=None")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    home = bench.make_home("stock", "mlp")
    assert home.is_dir()
    variables = bench.make_environ("stock", home)
    assert variables["HOME"] == str(home)
    assert "THEANO_FLAGS" not in variables
    assert "OPENBLAS_CORETYPE" not in variables
    assert "PATH" in variables


@pytest.mark.parametrize(
    ("environment", "flags"),
    [("openblas", "on_opt_error=raise"), ("2017-openblas", ""), ("jax", "")],
)
def test_a_failed_optimization_is_an_error_only_in_current_stacks(
    environment: str, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THEANO_FLAGS", raising=False)
    assert bench.make_environ(environment, tmp_path).get("THEANO_FLAGS", "") == flags


def test_losses_agree_within_the_tolerance_of_their_dtype() -> None:
    assert bench.losses_agree([1.0, 2.0], [1.0, 2.0001], "float32")
    assert not bench.losses_agree([1.0, 2.0], [1.0, 2.0001])
    with pytest.raises(ValueError, match="longer"):
        bench.losses_agree([1.0], [2.0, 2.0])
