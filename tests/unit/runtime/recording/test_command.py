import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from theano_fast.recording import command, comparing
from theano_fast.recording.recorder import FORMAT

ONE = {
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
    """A record, and one whose function is another."""
    found = []
    for name in "fg":
        file = tmp_path / f"{name}.json"
        file.write_text(
            json.dumps({"format": FORMAT, "functions": [{**ONE, "name": name, "calls": []}]})
        )
        found.append(str(file))
    return found


def test_exit_status_tells_what_differs(files, capsys):
    assert command.main(["compare", files[0], files[0]]) == 0
    assert command.main(["compare", *files]) == command.DIFFERS
    assert "differs first: 1 f: is another function: 1 g" in capsys.readouterr().out


def test_json(files, capsys):
    command.main(["compare", *files, "--json"])
    assert json.loads(capsys.readouterr().out)["first"]["function"] == "1 f"


@pytest.fixture
def ended(monkeypatch):
    """What a program's run is replaced by: a function of its command line."""

    def use(run):
        monkeypatch.setattr(command.subprocess, "run", lambda words, **_: run(words))

    return use


def test_what_cannot_be_recorded_is_told(tmp_path, ended):
    def missing(words):
        raise FileNotFoundError(2, "No such file")

    program = tmp_path / "program.py"
    with pytest.raises(comparing.RecordError, match="is no file"):
        command.main([str(program)])
    program.write_text("")
    with pytest.raises(comparing.RecordError, match="is no directory"):
        command.main(["run", "--out", "/no/folder/out.json", str(program)])
    ended(missing)
    words = ["run", "--python", "/no/python", "--out", str(tmp_path / "out.json"), str(program)]
    with pytest.raises(comparing.RecordError, match="--python: /no/python: No such file"):
        command.main(words)
    ended(lambda words: SimpleNamespace(returncode=-9))
    with pytest.raises(comparing.RecordError, match=r"killed by SIGKILL, and left no record"):
        command.main(["run", "--out", str(tmp_path / "out.json"), str(program)])


def test_a_program_is_run_with_its_own_words(tmp_path, monkeypatch, ended, capsys, files):
    def run(words):
        assert words[-3:] == ["program.py", "--out", "1"]
        Path(json.loads(words[2])["file"]).write_text(Path(files[0]).read_text())
        return SimpleNamespace(returncode=3)

    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text("")
    ended(run)
    assert command.main(["program.py", "--out", "1"]) == 3
    assert "1 functions, 1 calls; see" in capsys.readouterr().err
    assert Path("program-record.json").exists()
