"""Test builds: the engine, lock files, printed lines and the report of timings."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder import report
from builder.common import paths, processes
from builder.common.errors import HostToolMissing, NotReproducible, UsageError
from builder.environment.envs import MARK, Environment, Lock
from builder.options import Options
from builder.package.channel import Package
from builder.package.package_cache import Plan
from builder.pipeline import BUILD_STEPS, Build
from builder.stack import stacks
from builder.timing.timings import Span

PLAN = Plan((), {}, {}, {})


def make_build(options: Options | None = None, later: tuple[str, ...] = ()) -> Build:
    """Make a build of the stack openblas with an empty plan."""
    return Build(stacks.load("openblas"), PLAN, options or Options(), later)


def test_an_unknown_or_missing_engine_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="rattler-build, conda-build"):
        Build.create("openblas", Options(engine="make"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostToolMissing, match="conda-build is not on PATH"):
        Build.create("openblas", Options(engine="conda-build"))


def test_lock_writes_the_lock_file_only_with_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``write``, print a new lock as a difference; with --locked, refuse the lock."""
    package = Package(Path("/c/zlib-1.2.13-h0_0.conda"), "linux-64", "ab" * 32, 5)
    monkeypatch.setattr(paths, "LOCKS", tmp_path)
    monkeypatch.setattr(Build, "build_packages", lambda _: [])
    monkeypatch.setattr(Build, "resolve", lambda *_: Lock("openblas", ("spec 0",), (package,)))
    locked = Options(locked=True)
    with pytest.raises(NotReproducible, match="zlib"):
        make_build(locked).lock()
    make_build().lock()
    output = capsys.readouterr().out
    assert "+CHANNEL/linux-64/zlib-1.2.13-h0_0.conda" in output
    assert "./invoke lock --stack=openblas" in output
    assert list(tmp_path.iterdir()) == []
    make_build().lock(write=True)
    make_build(locked).lock()
    make_build().lock()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("archive", ["", "ab" * 32])
def test_lock_files_with_amds_library_are_written_below_build(
    archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = stacks.load("openblas-amdlibm")
    stack = stacks.replace_amdlibm(stack, archive) if archive else stack
    monkeypatch.setattr(paths, "LOCKS", tmp_path / "envs")
    monkeypatch.setattr(paths, "OWN_LOCKS", tmp_path / "build" / "locks")
    monkeypatch.setattr(Build, "build_packages", lambda _: [])
    monkeypatch.setattr(Build, "resolve", lambda *_: Lock(stack.name, "a==1 0", ()))
    Build(stack, PLAN, Options()).lock(write=True)
    assert (tmp_path / "envs").exists() != bool(archive)
    assert (tmp_path / "build" / "locks" / "openblas-amdlibm-aocl").exists() == bool(archive)


CHECKS = [
    {"name": name, "status": status}
    for name, status in (("blas", "passed"), ("scan", "passed"), ("libm", "skipped"))
]


def test_a_build_prints_its_checks_and_the_next_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = tmp_path / "envs" / "openblas"
    for file in (prefix / MARK, prefix / "bin" / "theano-fast"):
        file.parent.mkdir(parents=True)
        file.write_text('{"lock": "x"}')
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    environment = Environment(prefix, Lock("openblas", ("spec 0",), ()))
    monkeypatch.setattr(Build, "install", lambda _: environment)

    def run(*_: object, log: Path, **__: object) -> int:
        report.write({"checks": CHECKS}, report.get_verification_file("openblas"))
        return 0

    monkeypatch.setattr(processes, "run_logged", run)
    make_build(later=BUILD_STEPS).run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2/3 verification 2 checks passed, 1 skipped (libm), 0:00"
    assert lines[1] == "3/3 report       reports/openblas.json, 0:00"
    assert lines[2] == "openblas: verified: 2 checks passed, 1 skipped; envs/openblas"
    assert max(map(len, lines)) <= 80
    assert [line.partition("#")[0].strip() for line in lines[3:]] == [
        "envs/openblas/bin/python train.py",
        "./invoke verify --stack=openblas --full",
        "./invoke image --stack=openblas",
    ]
    make_build(later=BUILD_STEPS).run()
    assert "openblas: verified before: 2 checks passed, 1 skipped;" in capsys.readouterr().out


def test_timings_have_a_report_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    stack, plan = stacks.load("openblas"), Plan((), {"zlib": frozenset()}, {}, {})
    silent, verbose = Build(stack, plan, Options()), Build(stack, plan, Options(timings=True))
    verbose._report_timings([])
    assert capsys.readouterr().out == "no build times are recorded in this checkout\n"
    silent._report_timings([Span("zlib", 0.0, 2.0, 3.0)])
    assert capsys.readouterr().out == ""
    assert report.read(tmp_path / "openblas-timings.json")["chain"] == ["zlib"]
    verbose._report_timings([])
    output = capsys.readouterr().out
    assert output.startswith("times of the last build:\nrecipe")
    assert "zlib   *   0:00   0:02      3  100%" in output
