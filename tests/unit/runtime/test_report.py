"""Test the text and JSON reports of checks."""

import json

import pytest

pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")

from theano_fast import report
from theano_fast.checks.result import Record, Result, record
from theano_fast.stack import Stack

STACK = Stack("openblas", {"blas": "openblas"})
PASSED = Record("blas", "passed", 1.25, "all well", {"threads": 2})
FAILED = Record("scan", "failed", 30, "word " * 40, traceback="Traceback ...")
SKIPPED = Record("gpu", "skipped", 0, "no GPU")


def test_the_json_report_has_sorted_keys_and_a_schema_version():
    tree = report.make_document(STACK, {"z": 1, "a": 2}, [PASSED, FAILED, SKIPPED], False, False)
    text = report.to_json(tree)
    assert list(json.loads(text)) == sorted(tree)
    assert json.loads(text)["facts"] == {"a": 2, "z": 1}
    assert tree["schema_version"] == 1
    assert tree["counts"] == {"passed": 1, "failed": 1, "skipped": 1}
    assert tree["checks"][0]["measurements"] == {"threads": 2}
    assert text.endswith("}\n")


def test_a_long_message_is_wrapped_in_its_column():
    lines = report.format_row(FAILED).splitlines()
    assert lines[0].startswith("scan        failed      30.0  word word")
    assert len(lines) > 1
    assert all(line.startswith(" " * report.INDENT + "word") for line in lines[1:])
    assert max(map(len, lines)) <= report.WIDTH


def test_the_heading_of_results_is_above_their_column():
    assert report.format_header().index("result") == report.INDENT


def test_the_summary_counts_checks_by_status():
    text = report.format_summary(STACK, [PASSED, SKIPPED], True)
    assert text == "openblas: verified (1 passed, 0 failed, 1 skipped)"
    assert "NOT verified" in report.format_summary(STACK, [FAILED], False)


def test_each_line_of_a_node_begins_with_the_nodes_name():
    text = report.format_node(
        "node3", "a CPU", [PASSED, Record("blas", "failed", 1, "none", details=("x",))]
    )
    assert text.splitlines() == ["node3: a CPU", "node3: blas failed: none", "node3: x"]


def test_write_replaces_a_file_atomically(tmp_path):
    file = tmp_path / "report.json"
    file.write_text("old")
    report.write(file, "new")
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_facts_are_printed_as_indented_lines():
    tree = {"b": {"c": 1}, "a": [{"x": 1}, {"x": 2}], "d": []}
    assert report.render_facts(tree) == "a:\n  x: 1\na:\n  x: 2\nb:\n  c: 1\nd: []"


def test_a_long_list_is_wrapped_and_indented():
    cves = [f"CVE-2024-{number}" for number in range(10000, 10020)]
    lines = report.render_facts({"fixes": {"python": cves}}).splitlines()
    assert lines[:2] == ["fixes:", f"  python: {', '.join(cves[:5])},"]
    assert all(line.startswith("    CVE-") for line in lines[2:])
    assert max(map(len, lines)) <= report.WIDTH


@pytest.mark.parametrize(
    ("result", "status", "message"),
    [
        (Result("fine"), "passed", "fine"),
        (Result("fine", skipped="no GPU"), "skipped", "no GPU"),
        (Result("fine", ("one", "two"), skipped="no GPU"), "failed", "one; two"),
    ],
)
def test_a_check_with_failures_has_failed_even_if_it_was_skipped(result, status, message):
    check_record = record("blas", 1.0, result)
    assert (check_record.status, check_record.message) == (status, message)


def test_progress_estimates_the_remaining_time(monkeypatch, capsys):
    monkeypatch.setattr(report.time, "monotonic", lambda: 130.0)
    report.print_progress(3, 9, 100.0, "mkl")
    report.print_progress(4, 9, 100.0, "cuda", "failed")
    assert capsys.readouterr().err == "3 of 9, mkl: about 60 s left\n4 of 9, cuda: failed\n"
