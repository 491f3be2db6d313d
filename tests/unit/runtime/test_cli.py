import pytest

pytest.importorskip("tomllib", reason="a stack's Python has tomllib (3.11)")

from theano_fast import cli, stack
from theano_fast.checks import CHECKS
from theano_fast.checks.result import Record

STACK = stack.Stack("openblas", {"blas": "openblas"})


@pytest.fixture
def built(monkeypatch):
    """An environment whose checks were run: their records are given to the test to choose."""
    records = []
    known = {"host": {"cpu": "A CPU", "cpus_usable": 2}, "versions": {"python": "3.11.2"}}
    monkeypatch.setattr(stack, "load", lambda: STACK)
    monkeypatch.setattr(cli, "gather_facts", lambda flags: known)
    monkeypatch.setattr(cli.verify, "run", lambda *_: iter(records))
    return records


def test_list(capsys):
    assert cli.main(["verify", "--list"]) == cli.VERIFIED
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [check.name for check in CHECKS]


@pytest.mark.parametrize(
    "arguments",
    [[], ["verify", "--check", "nope"], ["verify", "--json", "/no/such/folder/x"], ["prove"]],
)
def test_wrong_usage(arguments):
    with pytest.raises(SystemExit) as raised:
        cli.main(arguments)
    assert raised.value.code == cli.USAGE


def test_no_stack(monkeypatch, capsys):
    def refuse():
        raise stack.StackError("no such file")

    monkeypatch.setattr(stack, "load", refuse)
    assert cli.main(["verify"]) == cli.NO_STACK
    assert capsys.readouterr().err == "theano-fast: no such file\n"


def test_a_verified_environment(built, capsys, tmp_path):
    built.append(Record("blas", "passed", 2.0, "OpenBLAS 0.3.29"))
    assert cli.main(["verify", "--json", str(tmp_path / "report.json")]) == cli.VERIFIED
    assert "blas        passed       2.0  OpenBLAS 0.3.29" in capsys.readouterr().out
    assert '"verified": true' in (tmp_path / "report.json").read_text()


def test_a_task_of_several_tells_of_its_node(built, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SLURMD_NODENAME", "node3")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    built.append(Record("blas", "failed", 2.0, "wrong"))
    assert cli.main(["verify", "--json", str(tmp_path / "report.json")]) == cli.FAILED
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("node3: ")
    assert "NOT verified" in first
    assert second == "node3: blas failed: wrong"
    assert [file.name for file in tmp_path.iterdir()] == ["report-node3.json"]


def test_a_failed_check(built, capsys):
    built.append(Record("blas", "failed", 2.0, "wrong", details=("a line",), traceback="Trace"))
    assert cli.main(["verify"]) == cli.FAILED
    captured = capsys.readouterr()
    assert "NOT verified (0 passed, 1 failed, 0 skipped)" in captured.out
    assert "a line" in captured.out
    assert "Trace" in captured.err


def test_an_interruption(built, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.verify, "run", interrupt)
    assert cli.main(["verify"]) == cli.INTERRUPTED
    assert "nothing was verified" in capsys.readouterr().err


def test_a_compiledir_is_removed_unless_it_was_named(tmp_path):
    with cli.compiledir(None) as folder:
        assert folder.is_dir()
    assert not folder.exists()
    with cli.compiledir(tmp_path / "kept"):
        pass
    assert (tmp_path / "kept").is_dir()
