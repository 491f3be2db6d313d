"""Test the SVG chart of stacked bars: names, lengths, colours and bounds."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from builder.measure import bar_chart

GROUPS = {
    "a <b> & c": {"stock": {"graph": 1.0, "linker": 3.0}, "mkl": {"graph": 0.5, "linker": 0.5}},
    "d": {"jax": {"compile": 2.0}},
}
NAMESPACE = "{http://www.w3.org/2000/svg}"


def draw() -> ET.Element:
    return ET.fromstring(
        bar_chart.draw_stacked_bars("Title", ("graph", "linker", "compile"), GROUPS)
    )


def find_bars(svg: ET.Element) -> list[ET.Element]:
    """Return the rectangles of the bars, without the squares of the legend."""
    return [bar for bar in svg.iter(f"{NAMESPACE}rect") if bar.get("height") != bar.get("width")]


def test_the_picture_has_names_and_totals() -> None:
    texts = [element.text for element in draw().iter(f"{NAMESPACE}text")]
    assert {"Title", "a <b> & c", "d", "stock", "mkl", "jax", "4.0 s", "1.0 s", "2.0 s"} <= {*texts}


def test_the_lengths_of_a_groups_bars_are_proportional_to_the_seconds() -> None:
    widths = [float(bar.get("width", 0)) for bar in find_bars(draw())]
    quarter = bar_chart.BAR / 4
    assert widths == [quarter, 3 * quarter, quarter / 2, quarter / 2, bar_chart.BAR]


def test_the_phases_of_a_bar_are_adjacent_and_have_their_own_colours() -> None:
    first, second, *_ = find_bars(draw())
    assert float(first.get("x", 0)) + float(first.get("width", 0)) == float(second.get("x", 0))
    assert [first.get("fill"), second.get("fill")] == list(bar_chart.COLOURS[:2])


def test_no_bar_exceeds_the_picture() -> None:
    svg = draw()
    height, width = float(svg.get("height", 0)), float(svg.get("width", 0))
    for bar in find_bars(svg):
        assert float(bar.get("y", 0)) + float(bar.get("height", 0)) <= height
        assert float(bar.get("x", 0)) + float(bar.get("width", 0)) <= width
