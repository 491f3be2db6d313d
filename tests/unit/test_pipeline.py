from __future__ import annotations

from pathlib import Path

import pytest

from builder import pipeline, report
from builder.common import paths, processes
from builder.common.errors import (
    EnvironmentFailed,
    HostToolMissing,
    NotReproducible,
    UsageError,
    VerifyFailed,
)
from builder.environment.envs import MARK, Environment, Lock
from builder.package import rebuilds
from builder.package.channel import Package
from builder.package.packages import Plan
from builder.stack import stacks
from builder.timing.timings import Span


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rattler-build, conda-build"):
        pipeline.Options(engine="make")
    with pytest.raises(HostToolMissing, match="conda-build is not on PATH"):
        pipeline.Options(engine="conda-build")
    with pytest.raises(UsageError, match="is not a directory"):
        pipeline.Options(sources=tmp_path / "none")
    with pytest.raises(UsageError, match="--amdlibm-archive: there is no file"):
        pipeline.Options(amdlibm_archive=tmp_path / "none")


def test_only_lock_writes_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "LOCKS", tmp_path)
    planned = pipeline.Planned(stacks.load("openblas"), Plan((), {}, {}, {}))
    monkeypatch.setattr(pipeline, "packages", lambda *_: (planned, []))
    package = Package(Path("/c/zlib-1.2.13-h0_0.conda"), "linux-64", "ab" * 32, 5)
    monkeypatch.setattr(pipeline, "resolve", lambda *_: Lock("openblas", ("spec 0",), (package,)))
    with pytest.raises(NotReproducible, match="zlib"):
        pipeline.lock("openblas", pipeline.Options(locked=True))
    pipeline.lock("openblas", pipeline.Options())
    told = capsys.readouterr().out
    assert "+CHANNEL/linux-64/zlib-1.2.13-h0_0.conda" in told
    assert "./invoke lock --stack=openblas" in told
    assert list(tmp_path.iterdir()) == []
    pipeline.lock("openblas", pipeline.Options(), write=True)
    pipeline.lock("openblas", pipeline.Options(locked=True))
    pipeline.lock("openblas", pipeline.Options())
    assert capsys.readouterr().out == ""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    prefix = tmp_path / "envs" / "openblas"
    for file in (prefix / MARK, prefix / "bin" / "theano-fast"):
        file.parent.mkdir(parents=True)
        file.write_text('{"lock": "x"}')
    return prefix


def test_verify_needs_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    with pytest.raises(EnvironmentFailed, match="invoke build --stack=openblas"):
        pipeline.verify("openblas")


def test_a_stack_with_amds_own_library_is_verified_by_its_name(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.rename(environment.with_name("openblas-amdlibm-aocl"))
    monkeypatch.setattr(processes, "show", lambda *_, **__: 1)
    with pytest.raises(VerifyFailed, match="stack openblas-amdlibm-aocl does not"):
        pipeline.verify("openblas-amdlibm-aocl")


def test_a_stack_with_programs_is_verified_in_whichever_order(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.rename(environment.with_name("openblas+keras+pymc3"))
    monkeypatch.setattr(processes, "show", lambda *_, **__: 1)
    with pytest.raises(VerifyFailed, match=r"stack openblas\+keras\+pymc3 does not"):
        pipeline.verify("openblas+pymc3+keras")


def test_verify_hides_the_users_settings(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}

    def show(argv: list[object], *, env: dict[str, str]) -> int:
        seen.update(env)
        report.write({"passed": True}, report.verification("openblas"))
        return 0

    monkeypatch.setattr(processes, "show", show)
    monkeypatch.setenv("THEANO_FLAGS", "blas.ldflags=")
    assert pipeline.verify("openblas") == {"passed": True}
    assert "THEANO_FLAGS" not in seen
    assert "PATH" in seen


def test_a_failed_check_fails_the_build(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "show", lambda *_, **__: 1)
    with pytest.raises(VerifyFailed, match="stack openblas does not prove itself"):
        pipeline.verify("openblas")


def test_what_a_failed_check_says_is_shown_from_its_log(
    environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def record(*_: object, log: Path, **__: object) -> int:
        log.write_text("blas        failed       0.1  another BLAS\n")
        return 1

    monkeypatch.setattr(processes, "record", record)
    with pytest.raises(VerifyFailed):
        pipeline.verify("openblas", log=environment / "verify.log")
    assert "another BLAS" in capsys.readouterr().out


CHECKS = [
    {"name": name, "status": status}
    for name, status in (("blas", "passed"), ("scan", "passed"), ("libm", "skipped"))
]


def test_at_the_end_is_what_was_proved_and_what_is_next(
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned = pipeline.Planned(stacks.load("openblas"), Plan((), {}, {}, {}))
    installed = Environment(environment, Lock("openblas", ("spec 0",), ()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(pipeline, "create", lambda *_: (planned, installed))

    def record(*_: object, log: Path, **__: object) -> int:
        report.write({"checks": CHECKS}, report.verification("openblas"))
        return 0

    monkeypatch.setattr(processes, "record", record)
    pipeline.build("openblas", pipeline.Options())
    lines = capsys.readouterr().out.splitlines()
    proved = "2 checks passed, 1 skipped (libm)"
    assert lines[0] == f"verification {proved}, 0:00"
    assert lines[1] == "report reports/openblas.json, 0:00"
    assert lines[2] == "openblas: verified: 2 checks passed, 1 skipped; envs/openblas"
    assert max(map(len, lines)) <= 80
    assert [line.partition("#")[0].strip() for line in lines[3:]] == [
        "envs/openblas/bin/python train.py",
        "./invoke verify --stack=openblas --full",
        "./invoke image --stack=openblas",
    ]
    pipeline.build("openblas", pipeline.Options())
    assert "openblas: verified before: 2 checks passed, 1 skipped;" in capsys.readouterr().out


def test_timings_are_apart_from_what_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    plan = Plan((), {"zlib": frozenset()}, {}, {})
    asked, silent = pipeline.Options(timings=True), pipeline.Options()
    pipeline._time("openblas", plan, asked, [])
    assert capsys.readouterr().out == "nothing was built here yet\n"
    pipeline._time("openblas", plan, silent, [Span("zlib", 0.0, 2.0, 3.0)])
    assert capsys.readouterr().out == ""
    assert report.read(tmp_path / "openblas-timings.json")["chain"] == ["zlib"]
    pipeline._time("openblas", plan, asked, [])
    told = capsys.readouterr().out
    assert told.startswith("of the last build:\nrecipe")
    assert "zlib   *   0:00   0:02      3  100%" in told


@pytest.mark.parametrize("archive", ["", "ab" * 32])
def test_only_what_anybody_can_build_is_locked_in_the_repository(
    archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = stacks.load("openblas-amdlibm")
    stack = stacks.with_amdlibm(stack, archive) if archive else stack
    planned = pipeline.Planned(stack, Plan((), {}, {}, {}))
    monkeypatch.setattr(paths, "LOCKS", tmp_path / "envs")
    monkeypatch.setattr(paths, "OWN_LOCKS", tmp_path / "build" / "locks")
    monkeypatch.setattr(pipeline, "packages", lambda *_: (planned, []))
    monkeypatch.setattr(pipeline, "resolve", lambda *_: Lock(stack.name, "a==1 0", ()))
    pipeline.lock("openblas-amdlibm", pipeline.Options(), write=True)
    assert (tmp_path / "envs").exists() != bool(archive)
    assert (tmp_path / "build" / "locks" / "openblas-amdlibm-aocl").exists() == bool(archive)


def test_what_amds_own_library_is_rebuilt_of_goes_to_the_second_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "aocl.tar.gz"
    archive.touch()
    stack = stacks.with_amdlibm(stacks.load("openblas-amdlibm"), "ab" * 32)
    planned = pipeline.Planned(stack, Plan((), {}, {}, {}))
    given: list[object] = []

    def rebuild(*arguments: object) -> list[rebuilds.Comparison]:
        given.extend(arguments)
        return [rebuilds.Comparison("a", "1", "1", ())]

    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    monkeypatch.setattr(pipeline, "plan", lambda *_: planned)
    monkeypatch.setattr(pipeline, "_packages", lambda *_: (planned, []))
    monkeypatch.setattr(pipeline, "fetch_sources", lambda *_: [])
    monkeypatch.setattr(rebuilds, "choose", lambda *_: [])
    monkeypatch.setattr(rebuilds, "rebuild", rebuild)
    pipeline.rebuild("openblas-amdlibm", pipeline.Options(amdlibm_archive=archive))
    assert given[1] == "openblas-amdlibm"
    assert given[-1] == archive
    assert (tmp_path / "openblas-amdlibm-aocl-rebuild.json").is_file()
