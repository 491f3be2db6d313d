"""Run the measuring programs of bench/ in real environments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from builder import report
from builder.common import paths
from builder.common.errors import CommandFailed
from builder.common.processes import Conversation
from builder.environment import envs
from builder.measure import bench, call_time, compile_time, references

FACTS = """
import json, sys, numpy, scipy, theano
print(json.dumps([sys.version_info[:2], theano.__version__, numpy.__version__, scipy.__version__]))
"""


@pytest.fixture(autouse=True)
def separate_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test its own directories for home directories and reports."""
    monkeypatch.setattr(paths, "BENCHES", tmp_path / "homes")
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")


@pytest.mark.parametrize("graph", ["mlp", "ntm1"])
def test_a_graph_is_measured_from_both_caches(prefix: Path, graph: str) -> None:
    """The report has the costs of a first call with an empty and with a warm compile cache."""
    file = compile_time.measure([prefix.name], [graph], quick=True)
    rows = report.read(file)["rows"][graph][prefix.name]
    empty, warm = rows["empty"], rows["warm"]
    assert set(empty["phases"]) == {"import", "graph", "optimizer", "linker", "first call"}
    assert min(empty["phases"].values()) > 0
    assert empty["compilers"] > warm["compilers"]
    assert empty["cpu"] > warm["cpu"]
    assert empty["losses"] == warm["losses"]
    assert empty["losses"][0] > empty["losses"][1] > empty["losses"][2]
    # A process that imports Theano needs more than 50 MB. With these graphs, it needs less than
    # 1 GB.
    assert 5e7 < empty["peak_memory"] < 1e9
    assert min(empty["bound"].values()) > 0
    assert empty["call"] > 0


@pytest.mark.thorough
def test_the_second_round_compiles_nothing(prefix: Path) -> None:
    """The measuring process compiles modules only in its first round."""
    with call_time.start_process(prefix.name, []) as conversation:
        first = json.loads(conversation.ask("round"))
        modules = set(paths.BENCHES.rglob("*.so"))
        second = json.loads(conversation.ask("round"))
    assert list(first) == list(second)
    assert set(call_time.group_calls(list(first))) == {
        f"{dtype} {length}"
        for dtype in ("float32", "float64")
        for length in ("1e+03", "1e+05", "1e+07")
    }
    assert modules
    assert set(paths.BENCHES.rglob("*.so")) == modules


@pytest.mark.parametrize("peer", references.PEERS)
@pytest.mark.parametrize("graph", ["mlp"])
def test_a_peer_computes_the_same_losses(prefix: Path, peer: str, graph: str) -> None:
    require_installed(peer)
    compile_time.measure([prefix.name, peer], [graph], quick=True)


def test_stock_theano_has_the_documented_versions() -> None:
    require_installed("stock")
    home = bench.make_home("stock", "facts")
    done = subprocess.run(
        [envs.get_python_path("stock"), "-c", FACTS],
        env=bench.make_environ("stock", home),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [[3, 9], "1.0.5", "1.21.6", "1.7.3"]


def require_installed(name: str) -> None:
    """Skip the test if a reference is not installed: its installation needs a network."""
    if not (paths.ENVIRONMENTS / name / references.MARK).exists():
        pytest.skip(f"build/envs/{name} is not installed: ./invoke references")


def test_a_conversation_ends_with_its_reason(tmp_path: Path) -> None:
    """A program that exits during a conversation causes an error with its status and message."""
    program = "print(input().upper(), flush=True); raise SystemExit('the reason')"
    with Conversation([sys.executable, "-c", program], env={}, cwd=tmp_path) as conversation:
        assert conversation.ask("word") == "WORD"
        with pytest.raises(CommandFailed, match=r"exit status 1\nthe reason"):
            conversation.ask("word")
