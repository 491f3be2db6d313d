"""Test the tasks of `./invoke`: flags, help, suggestions and refusals."""

from __future__ import annotations

import ast
import re
import signal
import sys
from pathlib import Path

import pytest
from invoke.context import Context

import tasks
from builder import pipeline
from builder.common import paths
from builder.measure import compile_time
from builder.options import Options
from builder.proof import fuzzing, hosts
from builder.stack import stacks

FILE = paths.ROOT / "tasks.py"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run ``./invoke`` with arguments in this process; return the exit code and the output."""
    program = tasks.Invoke("0", name="Invoke", binary="./invoke")
    with pytest.raises(SystemExit) as system_exit:
        program.run(["invoke", "--search-root", str(paths.ROOT), *arguments])
    streams = capsys.readouterr()
    return int(system_exit.value.code or 0), streams.out + streams.err


def find_imports(file: Path) -> set[str]:
    """Return the modules that a file imports at its top level."""
    return {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


def test_tasks_py_needs_only_invoke_and_the_standard_library() -> None:
    """The host's Invoke reads tasks.py before the builder's tools are installed."""
    allowed = {*sys.stdlib_module_names, "invoke", "builder"}
    files = {FILE}
    for file in (FILE, paths.ROOT / "builder" / "options.py"):
        modules = find_imports(file)
        assert {module.partition(".")[0] for module in modules} <= allowed
        files |= {
            paths.ROOT / f"{module.replace('.', '/')}.py"
            for module in modules
            if module.startswith("builder")
        }
    builder = paths.ROOT / "builder"
    assert files == {FILE, builder / "options.py", builder / "common" / "errors.py"}


def test_help_lists_the_programs_of_stacks_toml(capsys: pytest.CaptureFixture[str]) -> None:
    _, output = run(capsys, "build", "--help")
    assert set(stacks.list_programs()) <= set(re.findall(r"[\w.-]+", output))
    _, output = run(capsys, "conformance", "--help")
    words = set(re.findall(r"[\w.-]+", output))
    assert "pymc3-3.7" in words
    assert "mpi4py" not in words


def test_shared_flags_become_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[str, Options]] = []
    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    monkeypatch.setattr(pipeline, "build_stack", lambda *arguments: calls.append(arguments))
    flags = ("--with=pymc3,keras", f"--sources={tmp_path}", "--offline", "--jobs=3", "--locked")
    program = tasks.Invoke("0", name="Invoke", binary="./invoke")
    program.run(
        ["invoke", "--search-root", str(paths.ROOT), "build", "--stack=mkl", *flags], exit=False
    )
    expected = Options(sources=tmp_path, offline=True, jobs=3, locked=True)
    assert calls == [("mkl+keras+pymc3", expected)]


def test_a_task_may_have_a_flag_named_like_an_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The task fetch writes the file --bundle; other tasks read the file --bundle."""
    bundle, calls = tmp_path / "bundle.tar", list[tuple[str, Options, None, Path]]()
    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    monkeypatch.setattr(pipeline, "fetch_stack", lambda *arguments: calls.append(arguments))
    program = tasks.Invoke("0", name="Invoke", binary="./invoke")
    arguments = ["fetch", "--stack=openblas", f"--bundle={bundle}"]
    program.run(["invoke", "--search-root", str(paths.ROOT), *arguments], exit=False)
    assert calls == [("openblas", Options(), None, bundle)]


def test_publish_needs_a_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    status, output = run(capsys, "publish")
    assert status == 2
    assert "--to" in output


def test_without_a_task_all_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, output = run(capsys)
    assert status == 0
    assert "./invoke build --stack=openblas" in output
    for name in (*tasks.FOR_USERS, "rebuild", "lint"):
        assert f"  {name} " in output


@pytest.mark.parametrize(
    ("arguments", "suggestion"), [(["biuld"], "build"), (["build", "--stak=mkl"], "--stack")]
)
def test_a_misspelt_word_gets_a_suggestion(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, output = run(capsys, *arguments)
    assert status == 2
    assert f"did you mean {suggestion}?" in output


def test_only_flags_of_the_task_are_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    status, output = run(capsys, "verify", "--chek")
    assert status == 2
    assert "did you mean" not in output


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_flags_of_a_task(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, output = run(capsys, "build", flag)
    assert status == 0
    assert "--amdlibm-archive" in output


def test_a_task_without_its_stack_lists_all_stacks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    status, output = run(capsys, "verify")
    assert status == 2
    assert "--stack=NAME is missing" in output
    assert "mkl-amdlibm" in output


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("pack --stack=2017-mkl", "./invoke image --stack=2017-mkl"),
        ("env --stack=2017-mkl --with=keras", "build/envs/2017-mkl/bin/pip install"),
        ("image --stack=2017-mkl --with=keras", "build/envs/2017-mkl/bin/pip install"),
        ("conformance --stack=2017-mkl --with=keras", "build/envs/2017-mkl/bin/pip install"),
        ("build --stack=2017-mkl-amdlibm --amdlibm-archive=tasks.py", "choose one of: openblas-"),
        ("fuzz --stack=2017-mkl", "choose one of: openblas, mkl"),
        ("bench --stack=2017-mkl", "./invoke bench --what=2017"),
        ("bench --what=run --stack=openblas,2017-mkl", "./invoke bench --what=2017"),
    ],
)
def test_python_2_stacks_refuse_unsupported_tasks(
    words: str, remedy: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    monkeypatch.chdir(paths.ROOT)
    status, output = run(capsys, *words.split())
    assert status == 2
    error, hint = output.splitlines()
    assert error.startswith("error: ")
    assert remedy in hint


def test_without_the_builders_tools_a_task_executes_the_invoke_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[list[str]] = []

    def execvp(program: str, arguments: list[str]) -> None:
        started.append([program, *arguments])
        raise SystemExit(0)

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["invoke", "stacks", "--audit"])
    monkeypatch.setattr(tasks.os, "execvp", execvp)
    with pytest.raises(SystemExit):
        tasks.stacks(Context())
    assert started == [["sh", "sh", str(paths.ROOT / "invoke"), "stacks", "--audit"]]


def test_quiet_and_verbose_exclude_each_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    status, output = run(capsys, "build", "--stack=openblas", "--quiet", "--verbose")
    assert status == 2
    assert "--quiet and --verbose exclude each other" in output


@pytest.mark.parametrize(
    ("words", "function", "hint"),
    [
        ("build --stack=openblas", "pipeline.build_stack", "; run again to continue"),
        ("fetch --stack=openblas", "pipeline.fetch_stack", "; run again to continue"),
        ("test --unit", "maintenance.checks.run_tests", ""),
        ("rebuild --stack=openblas", "second_build.rebuild_packages", ""),
    ],
)
def test_only_resumable_tasks_suggest_to_run_again(
    words: str,
    function: str,
    hint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("5 of 12 recipes are built")

    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    monkeypatch.setattr(f"builder.{function}", interrupt)
    before = signal.getsignal(signal.SIGTERM)
    try:
        status, output = run(capsys, *words.split())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == tasks.INTERRUPTED
    assert output == f"interrupted: 5 of 12 recipes are built{hint}\n"


def test_resumable_tasks_exist() -> None:
    names = {value.name for value in vars(tasks).values() if isinstance(value, tasks.BuilderTask)}
    assert set(tasks.RESUMABLE) <= names


def test_the_help_of_bench_lists_the_graphs() -> None:
    assert ", ".join(compile_time.GRAPHS) in tasks.bench.help["graphs"]


def test_spaces_after_the_commas_of_a_flag_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(tasks, "_has_tools", lambda: True)
    monkeypatch.setattr(hosts, "verify_on_hosts", lambda _, suites, __: calls.append(suites))
    monkeypatch.setattr(fuzzing, "fuzz", lambda *arguments: calls.append(arguments[-1]))
    program = tasks.Invoke("0", name="Invoke", binary="./invoke")
    for task, flag in (("hosts", "--suites=trixie, sid"), ("fuzz", "--category=scan, random")):
        arguments = ["invoke", "--search-root", str(paths.ROOT), task, "--stack=openblas", flag]
        program.run(arguments, exit=False)
    assert calls == [["trixie", "sid"], ["scan", "random"]]
