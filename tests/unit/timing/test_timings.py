from __future__ import annotations

from builder import report
from builder.timing import timings
from builder.timing.timings import Span

NEEDS = {"a": (), "b": (), "c": ("a", "b"), "d": ("c", "there already")}
SPANS = [
    Span("a", 0.0, 10.0, 15.0),
    Span("b", 0.0, 20.0, 15.0),
    Span("c", 20.1, 80.0, 60.0),
    Span("d", 80.0, 81.0, 0.0),
]


def test_the_chain_is_what_the_end_waited_for() -> None:
    assert timings.chain(SPANS, NEEDS) == ["b", "c", "d"]
    assert timings.chain([], NEEDS) == []


def test_the_drawing_is_plain_text_that_fits() -> None:
    known = report.timings_document("openblas", SPANS, NEEDS, jobs=2, cpus=2)
    lines = timings.draw(known)
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() and line.isprintable() for line in lines)
    rows = {line.split()[0]: line for line in lines[1:5]}
    assert "*" not in rows["a"]
    assert rows["b"].split()[1:6] == ["*", "0:00", "0:20", "15", "17%"]
    assert rows["c"].count("#") > 2 * rows["b"].count("#") > 0
    assert rows["a"].count("-") > 0
    # What took less than a column is seen too.
    assert rows["d"].count("#") == 1
    assert lines[5] == "* the chain that the end waited for: 75 of 90 CPU s"
    assert lines[6] == "1:21 on 2 CPUs, busy with this for 56% of it"


def test_of_nothing_there_is_no_drawing() -> None:
    assert timings.draw({}) == []
    assert timings.draw(report.timings_document("openblas", [], NEEDS, 1, 1)) == []
