"""Test `./invoke verify`: missing environments, failed checks and the user's flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder import report, verification
from builder.common import paths, processes
from builder.common.errors import EnvironmentFailed, UsageError, VerifyFailed
from builder.environment.envs import MARK


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the prefix of an installed environment without packages."""
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    prefix = tmp_path / "envs" / "openblas"
    for file in (prefix / MARK, prefix / "bin" / "theano-fast"):
        file.parent.mkdir(parents=True)
        file.write_text('{"lock": "x"}')
    return prefix


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("openblas", "--stack=openblas"),
        ("openblas+pymc3+keras", r"--stack=openblas\+keras\+pymc3"),
        ("openblas-amdlibm-aocl", "--stack=openblas-amdlibm --amdlibm-archive=FILE"),
    ],
)
def test_verify_needs_an_environment(
    name: str, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    with pytest.raises(EnvironmentFailed, match=f"invoke build {flags}$"):
        verification.verify(name)


@pytest.mark.parametrize("name", ["none", "none-aocl"])
def test_an_unknown_stack_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    with pytest.raises(UsageError, match="unknown stack 'none'"):
        verification.verify(name)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("openblas", "openblas"),
        ("openblas-amdlibm-aocl", "openblas-amdlibm-aocl"),
        ("openblas+pymc3+keras", "openblas+keras+pymc3"),
    ],
)
def test_a_failed_check_is_an_error(
    name: str, prefix: str, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.rename(environment.with_name(prefix))
    monkeypatch.setattr(processes, "run_on_terminal", lambda *_, **__: 1)
    with pytest.raises(VerifyFailed) as raised:
        verification.verify(name)
    assert prefix in str(raised.value)


def test_verify_runs_without_the_users_theano_flags(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables: dict[str, str] = {}

    def run(argv: list[object], *, env: dict[str, str]) -> int:
        variables.update(env)
        report.write({"passed": True}, report.get_verification_file("openblas"))
        return 0

    monkeypatch.setattr(processes, "run_on_terminal", run)
    monkeypatch.setenv("THEANO_FLAGS", "blas.ldflags=")
    assert verification.verify("openblas") == {"passed": True}
    assert "THEANO_FLAGS" not in variables
    assert "PATH" in variables


def test_the_log_of_a_failed_check_is_printed(
    environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object, log: Path, **__: object) -> int:
        log.write_text("blas        failed       0.1  another BLAS\n")
        return 1

    monkeypatch.setattr(processes, "run_logged", run)
    with pytest.raises(VerifyFailed):
        verification.verify("openblas", log=environment / "verify.log")
    assert "another BLAS" in capsys.readouterr().out
