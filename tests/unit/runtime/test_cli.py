"""Test the command `theano-fast`: its options, reports and exit codes."""

import pytest

pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")

from theano_fast import cli, stack
from theano_fast.checks import CHECKS
from theano_fast.checks.result import Record

STACK = stack.Stack("openblas", {"blas": "openblas"})


@pytest.fixture
def records(monkeypatch):
    """Replace the stack, its facts and its checks; return the list of the checks' records.

    A test adds records to the list.
    """
    results = []
    tree = {"host": {"cpu": "A CPU", "cpus_usable": 2}, "versions": {"python": "3.11.2"}}
    monkeypatch.setattr(stack, "load", lambda: STACK)
    monkeypatch.setattr(cli, "gather_facts", lambda flags: tree)
    monkeypatch.setattr(cli.verify, "run", lambda *_: iter(results))
    return results


def test_verify_lists_the_checks_with_the_option_list(capsys):
    assert cli.main(["verify", "--list"]) == cli.VERIFIED
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [check.name for check in CHECKS]


@pytest.mark.parametrize(
    "arguments",
    [[], ["verify", "--check", "nope"], ["verify", "--json", "/no/such/folder/x"], ["prove"]],
)
def test_wrong_arguments_have_their_own_exit_code(arguments):
    with pytest.raises(SystemExit) as raised:
        cli.main(arguments)
    assert raised.value.code == cli.USAGE


@pytest.mark.parametrize("name", [name for name, *_ in cli.WITH_PARSERS])
def test_a_command_with_its_own_parser_has_help(name, capsys):
    with pytest.raises(SystemExit) as raised:
        cli.main([name, "--help"])
    assert raised.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: theano-fast {name}")


def test_an_environment_without_a_stack_is_an_error(monkeypatch, capsys):
    def refuse():
        raise stack.StackError("no such file")

    monkeypatch.setattr(stack, "load", refuse)
    assert cli.main(["verify"]) == cli.NO_STACK
    assert capsys.readouterr().err == "theano-fast: no such file\n"


def test_a_verified_environment_is_reported_as_text_and_json(records, capsys, tmp_path):
    records.append(Record("blas", "passed", 2.0, "OpenBLAS 0.3.29"))
    assert cli.main(["verify", "--json", str(tmp_path / "report.json")]) == cli.VERIFIED
    assert "blas        passed       2.0  OpenBLAS 0.3.29" in capsys.readouterr().out
    assert '"verified": true' in (tmp_path / "report.json").read_text()


def test_in_a_slurm_job_lines_and_report_have_the_name_of_the_node(
    records, capsys, monkeypatch, tmp_path
):
    monkeypatch.setenv("SLURMD_NODENAME", "node3")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    records.append(Record("blas", "failed", 2.0, "wrong"))
    assert cli.main(["verify", "--json", str(tmp_path / "report.json")]) == cli.FAILED
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("node3: ")
    assert "NOT verified" in first
    assert second == "node3: blas failed: wrong"
    assert [file.name for file in tmp_path.iterdir()] == ["report-node3.json"]


def test_a_failed_check_is_an_error(records, capsys):
    records.append(Record("blas", "failed", 2.0, "wrong", details=("a line",), traceback="Trace"))
    assert cli.main(["verify"]) == cli.FAILED
    captured = capsys.readouterr()
    assert "NOT verified (0 passed, 1 failed, 0 skipped)" in captured.out
    assert "a line" in captured.out
    assert "Trace" in captured.err


def test_an_interruption_is_reported(records, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.verify, "run", interrupt)
    assert cli.main(["verify"]) == cli.INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


def test_only_a_named_compiledir_is_kept(tmp_path):
    with cli.make_compiledir(None) as folder:
        assert folder.is_dir()
    assert not folder.exists()
    with cli.make_compiledir(tmp_path / "kept"):
        pass
    assert (tmp_path / "kept").is_dir()
