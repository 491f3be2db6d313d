"""Test the installation of reference environments, and the pins of their packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed, EnvironmentFailed, UsageError
from builder.common.processes import Finished
from builder.measure import references
from builder.options import Options
from builder.package import solver
from builder.package.package_cache import Plan
from builder.source import sources


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Replace the programs that an installation starts; return their commands in order."""
    started: list[list[str]] = []

    def run(argv: list[object]) -> Finished:
        started.append([str(part) for part in argv])
        return Finished(0, "")

    plan = Plan((), {}, {"python": "key"}, {})
    monkeypatch.setattr(references, "_make_plan", lambda name: (plan, []))
    monkeypatch.setattr(references, "run", run)
    monkeypatch.setattr(sources, "fetch", lambda *_, **__: [Path("/c/pip-23.whl")])
    monkeypatch.setattr(solver, "call", lambda *_, **__: None)
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    return started


def test_an_installed_reference_is_not_installed_again(commands: list[list[str]]) -> None:
    prefix = references.install_reference("stock", Options())
    count = len(commands)
    (prefix / "marker").touch()
    assert references.install_reference("stock", Options()) == prefix
    assert len(commands) == count
    assert (prefix / "marker").exists()


def test_an_incomplete_environment_is_installed_again(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: list[object]) -> Finished:
        raise CommandFailed("no network")

    run_successfully = references.run
    monkeypatch.setattr(references, "run", fail)
    with pytest.raises(EnvironmentFailed, match="stock could not be installed:\nno network"):
        references.install_reference("stock", Options())
    (paths.ENVIRONMENTS / "stock" / "incomplete").touch()
    monkeypatch.setattr(references, "run", run_successfully)
    prefix = references.install_reference("stock", Options())
    assert not (prefix / "incomplete").exists()
    assert commands


def test_changed_pins_install_the_reference_again(
    commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    references.install_reference("stock", Options())
    count = len(commands)
    changed = tmp_path / "references"
    changed.mkdir()
    (changed / "stock.txt").write_text("six==1.17.0 --hash=sha256:0")
    monkeypatch.setattr(paths, "REFERENCES", changed)
    references.install_reference("stock", Options())
    assert len(commands) == 2 * count


def test_pip_requires_hashes(commands: list[list[str]]) -> None:
    references.install_reference("jax", Options())
    _, pinned = commands
    assert {"--require-hashes", "--no-build-isolation", str(paths.REFERENCES / "jax.txt")} <= {
        *pinned
    }


def test_offline_pip_uses_only_the_sources_directory(
    commands: list[list[str]], tmp_path: Path
) -> None:
    references.install_reference("stock", Options(sources=tmp_path, offline=True))
    assert {"--no-index", f"--find-links={tmp_path}"} <= {*commands[-1]}
    references.install_reference("jax", Options())
    assert "--no-index" not in commands[-1]


def test_an_unknown_reference_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'torch'\n.*stock, stock-programs, jax, pytensor"):
        references.install_reference("torch", Options())


@pytest.mark.parametrize("name", references.INTERPRETERS)
def test_every_requirement_is_pinned_and_hashed(name: str) -> None:
    pins = re.split(r"\n(?! )", (paths.REFERENCES / f"{name}.txt").read_text("utf-8").strip())
    assert all(re.match(r"\S+==\S+ \\\n +--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    requirements = re.findall(
        r"^[A-Za-z][\w-]+", (paths.REFERENCES / f"{name}.in").read_text("utf-8"), re.M
    )
    assert {word.lower() for word in requirements} <= {pin.partition("==")[0] for pin in pins}


def test_stock_has_an_interpreter_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = {name: references._make_plan(name)[0] for name in references.INTERPRETERS}
    versions = {name: plan.recipes[-1].outputs[0].version for name, plan in plans.items()}
    series = {name: version.rpartition(".")[0] for name, version in versions.items()}
    assert series == {"stock": "3.9", "stock-programs": "3.9", "jax": "3.11", "pytensor": "3.11"}
    # recipes/python/build.sh also builds stock's Python, so a change of the script must rebuild it.
    script = paths.RECIPES / "python" / "build.sh"
    assert script in plans["stock"].recipes[-1].project_paths
