"""Test the critical path of a build, and the text chart of its times."""

from __future__ import annotations

from builder import report
from builder.timing import timings
from builder.timing.timings import Span

NEEDS = {"a": (), "b": (), "c": ("a", "b"), "d": ("c", "built before")}
SPANS = [
    Span("a", 0.0, 10.0, 15.0),
    Span("b", 0.0, 20.0, 15.0),
    Span("c", 20.1, 80.0, 60.0),
    Span("d", 80.0, 81.0, 0.0),
]


def test_the_critical_path_ends_with_the_last_build() -> None:
    assert timings.find_critical_path(SPANS, NEEDS) == ["b", "c", "d"]
    assert timings.find_critical_path([], NEEDS) == []


def test_the_chart_is_ascii_text_of_80_columns() -> None:
    document = report.describe_timings("openblas", SPANS, NEEDS, jobs=2, cpus=2)
    lines = timings.draw(document)
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() and line.isprintable() for line in lines)
    rows = {line.split()[0]: line for line in lines[1:5]}
    assert "*" not in rows["a"]
    assert rows["b"].split()[1:6] == ["*", "0:00", "0:20", "15", "17%"]
    assert rows["c"].count("#") > 2 * rows["b"].count("#") > 0
    assert rows["a"].count("-") > 0
    # The bar of a build that is shorter than a column has one character.
    assert rows["d"].count("#") == 1
    assert lines[5] == "* critical path: 75 of 90 CPU s"
    assert lines[6] == "1:21 on 2 CPUs, of which the builds used 56%"


def test_an_empty_document_has_no_chart() -> None:
    assert timings.draw({}) == []
    assert timings.draw(report.describe_timings("openblas", [], NEEDS, 1, 1)) == []
