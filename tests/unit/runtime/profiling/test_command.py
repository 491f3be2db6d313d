"""Test `theano-fast profile`: reports, comparisons, pages and errors."""

import json
import re
import signal
from pathlib import Path
from types import SimpleNamespace as Made

import pytest
from theano_fast import profiles, stack
from theano_fast.profiling import advice, command


def test_compare_prints_a_table_and_writes_an_html_page(files, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert command.main(["compare", *map(str, files("train_fn")), "--html", str(page)]) == 0
    assert "55.918 1.00x    49.395 0.88x    48.985 0.88x" in capsys.readouterr().out
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_read_prints_every_row(files, capsys):
    assert command.main(["read", str(files("train_fn")[1])]) == 0
    text = capsys.readouterr().out
    assert re.search(r"optimizer +1,013\.889 s\n", text)
    assert re.search(r"nodes +1,288\n", text)
    assert "theano.compile.ops.DeepCopyOp" in text


@pytest.mark.parametrize("name", ["read", "compare"])
def test_both_commands_print_json(files, capsys, name):
    assert command.main([name, *map(str, files("grad_of_scan")), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_the_error_of_a_missing_or_foreign_file_has_its_name(tmp_path):
    file = tmp_path / "notes.txt"
    with pytest.raises(profiles.ProfileError, match=r"notes\.txt cannot be read"):
        command.main(["read", str(file)])
    file.write_text("nothing\n")
    with pytest.raises(profiles.ProfileError, match=r"notes\.txt, line 1: "):
        command.main(["read", str(file)])


@pytest.fixture
def replace_program(monkeypatch, files):
    """Return a function that sets the exit code and the profile of the profiled program."""

    def replace(status, text):
        def run(command, env, check):
            flags = dict(flag.split("=") for flag in env["THEANO_FLAGS"].split(","))
            if text:
                Path(flags["profiling.destination"]).write_text(text)
                lines = {"examples/run_tasks.py:376": {"783": "train.py:3: scan()"}}
                Path(command[3]).write_text(json.dumps(lines))
            return Made(returncode=status)

        monkeypatch.setattr(command.subprocess, "run", run)

    return replace


def test_the_reports_of_a_program_have_the_lines_of_its_nodes(replace_program, files, tmp_path):
    replace_program(3, files("train_fn")[1].read_text())
    out = tmp_path / "ntm"
    assert command.main(["--out", str(out), "train.py", "--out", "its own"]) == 3
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["ntm.html", "ntm.json", "ntm.speedscope.json"]
    (profile,) = json.loads((tmp_path / "ntm.json").read_text())["profiles"]
    assert profile["tables"]["Apply"]["rows"][0]["notes"] == ["train.py:3: scan()"]
    assert "train.py:3: scan()" in (tmp_path / "ntm.html").read_text()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_the_page_is_written_if_the_trials_are_interrupted(
    sent, replace_program, files, tmp_path, monkeypatch
):
    before = signal.getsignal(signal.SIGTERM)
    # A background job of a shell ignores SIGINT, so set Python's handler.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(stack, "find_siblings", tuple)
    monkeypatch.setattr(advice, "time_calls", lambda *_: signal.raise_signal(sent))
    replace_program(0, files("train_fn")[1].read_text())
    arguments = ["run", "--advise", "--out", str(tmp_path / "ntm"), "train.py"]
    assert command.main(arguments) == command.INTERRUPTED
    assert "interrupted" in (tmp_path / "ntm.html").read_text()
    signal.signal(signal.SIGTERM, before)
    signal.signal(signal.SIGINT, ignored)


def test_a_program_without_theano_is_an_error(replace_program):
    replace_program(0, "")
    with pytest.raises(profiles.ProfileError, match=r"train\.py ended with exit status 0, and"):
        command.main(["train.py"])
