"""Test `theano-fast record`: exit codes, JSON, errors, and the program's arguments."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from theano_fast.recording import command, record_comparison
from theano_fast.recording.recorder import FORMAT

# A recorded function, without its calls.
FUNCTION = {
    "number": 1,
    "name": "f",
    "line": "",
    "called": 1,
    "inputs": [],
    "outputs": [],
    "updates": [],
}


@pytest.fixture
def files(tmp_path):
    """Write two records of different functions; return their paths."""
    paths = []
    for name in "fg":
        file = tmp_path / f"{name}.json"
        file.write_text(
            json.dumps({"format": FORMAT, "functions": [{**FUNCTION, "name": name, "calls": []}]})
        )
        paths.append(str(file))
    return paths


def test_different_records_have_their_own_exit_code(files, capsys):
    assert command.main(["compare", files[0], files[0]]) == 0
    assert command.main(["compare", *files]) == command.DIFFERS
    assert "first difference: 1 f: is another function: 1 g" in capsys.readouterr().out


def test_compare_prints_json(files, capsys):
    command.main(["compare", *files, "--json"])
    first = json.loads(capsys.readouterr().out)["first"]
    assert first["function"] == "1 f"
    assert set(first) == {"function", "call", "value", "description"}


@pytest.fixture
def replace_program(monkeypatch):
    """Return a function whose argument replaces ``subprocess.run`` and gets the command's words."""

    def replace(run):
        monkeypatch.setattr(command.subprocess, "run", lambda words, **_: run(words))

    return replace


def test_each_error_of_a_recording_has_a_message(tmp_path, replace_program):
    def raise_not_found(words):
        raise FileNotFoundError(2, "No such file")

    program = tmp_path / "program.py"
    with pytest.raises(record_comparison.RecordError, match="is not a file"):
        command.main([str(program)])
    program.write_text("")
    with pytest.raises(record_comparison.RecordError, match="is not a directory"):
        command.main(["run", "--out", "/no/folder/out.json", str(program)])
    replace_program(raise_not_found)
    words = ["run", "--python", "/no/python", "--out", str(tmp_path / "out.json"), str(program)]
    with pytest.raises(record_comparison.RecordError, match="--python: /no/python: No such file"):
        command.main(words)
    replace_program(lambda words: SimpleNamespace(returncode=-9))
    with pytest.raises(
        record_comparison.RecordError, match=r"killed by SIGKILL, and wrote no record"
    ):
        command.main(["run", "--out", str(tmp_path / "out.json"), str(program)])


def test_a_program_gets_its_own_arguments_and_its_exit_code_is_returned(
    tmp_path, monkeypatch, replace_program, capsys, files
):
    def run(words):
        assert words[-3:] == ["program.py", "--out", "1"]
        Path(json.loads(words[2])["file"]).write_text(Path(files[0]).read_text())
        return SimpleNamespace(returncode=3)

    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text("")
    replace_program(run)
    assert command.main(["program.py", "--out", "1"]) == 3
    assert "1 functions, 1 calls; see" in capsys.readouterr().err
    assert Path("program-record.json").exists()
