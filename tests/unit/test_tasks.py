from __future__ import annotations

import ast
import signal
import sys
from pathlib import Path

import pytest
from invoke.context import Context

import tasks
from builder.common import paths
from builder.measure import compile_time

FILE = paths.ROOT / "tasks.py"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run the door's program in this process; its exit status and what it said."""
    program = tasks.Invoke("0", name="Invoke", binary="./invoke")
    with pytest.raises(SystemExit) as ended:
        program.run(["invoke", "--search-root", str(paths.ROOT), *arguments])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


def test_reading_the_tasks_needs_nothing_but_invoke() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    modules = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    known = {*sys.stdlib_module_names, "invoke", "builder"}
    assert {module.partition(".")[0] for module in modules} <= known
    assert {module for module in modules if module.startswith("builder")} == {
        "builder.common.errors"
    }


def test_without_a_task_all_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = run(capsys)
    assert status == 0
    assert "./invoke build --stack=openblas" in said
    for name in (*tasks.FOR_USERS, "rebuild", "lint"):
        assert f"  {name} " in said


@pytest.mark.parametrize(
    ("arguments", "near"), [(["biuld"], "build"), (["build", "--stak=mkl"], "--stack")]
)
def test_a_misspelt_word_has_a_nearest(
    arguments: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = run(capsys, *arguments)
    assert status == 2
    assert f"did you mean {near}?" in said


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_a_task_tells_its_own_flags(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = run(capsys, "build", flag)
    assert status == 0
    assert "--amdlibm-archive" in said


def test_a_task_without_a_stack_lists_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_equipped", lambda: True)
    status, said = run(capsys, "verify")
    assert status == 2
    assert "--stack=NAME is missing" in said
    assert "mkl-amdlibm" in said


@pytest.mark.parametrize(
    ("words", "instead"),
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
def test_what_python_2_cannot_do_is_refused_first(
    words: str, instead: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_equipped", lambda: True)
    monkeypatch.chdir(paths.ROOT)
    status, said = run(capsys, *words.split())
    assert status == 2
    error, hint = said.splitlines()
    assert error.startswith("error: ")
    assert instead in hint


def test_an_interpreter_without_the_tools_hands_over_to_the_door(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    handed: list[list[str]] = []

    def execvp(program: str, arguments: list[str]) -> None:
        handed.append([program, *arguments])
        raise SystemExit(0)

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["invoke", "stacks", "--audit"])
    monkeypatch.setattr(tasks.os, "execvp", execvp)
    with pytest.raises(SystemExit):
        tasks.stacks(Context())
    assert handed == [["sh", "sh", str(paths.ROOT / "invoke"), "stacks", "--audit"]]


def test_quiet_and_verbose_exclude_each_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_equipped", lambda: True)
    status, said = run(capsys, "build", "--stack=openblas", "--quiet", "--verbose")
    assert status == 2
    assert "--quiet and --verbose exclude each other" in said


@pytest.mark.parametrize(
    ("words", "stage", "told"),
    [
        ("build --stack=openblas", "pipeline.build", "; run again to go on from here"),
        ("fetch --stack=openblas", "pipeline.fetch", "; run again to go on from here"),
        ("test --unit", "maintenance.checks.test", ""),
        ("rebuild --stack=openblas", "pipeline.rebuild", ""),
    ],
)
def test_only_what_goes_on_says_so_when_it_is_interrupted(
    words: str,
    stage: str,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("5 of 12 recipes are built")

    monkeypatch.setattr(tasks, "_equipped", lambda: True)
    monkeypatch.setattr(f"builder.{stage}", interrupt)
    before = signal.getsignal(signal.SIGTERM)
    try:
        status, said = run(capsys, *words.split())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == tasks.INTERRUPTED
    assert said == f"interrupted: 5 of 12 recipes are built{told}\n"


def test_the_tasks_that_go_on_are_tasks() -> None:
    names = {value.name for value in vars(tasks).values() if isinstance(value, tasks.Door)}
    assert set(tasks.GO_ON) <= names


def test_the_bench_names_its_graphs() -> None:
    assert ", ".join(compile_time.GRAPHS) in tasks.bench.help["graphs"]
