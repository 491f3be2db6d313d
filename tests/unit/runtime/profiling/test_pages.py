"""Test the HTML pages of profiles and comparisons: numbers, escapes and colours."""

import json
import re
from html.parser import HTMLParser

from theano_fast import profiles
from theano_fast.profiling import pages, profile_comparison
from theano_fast.profiling.flame_graph import Frame

from tests.unit.runtime.profiling.conftest import STACKS


class Reader(HTMLParser):
    """Collect the text of a page's table cells, and the addresses that a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.cells, self.fetched, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "td" in self.open:
            self.cells[-1] += text


def parse_page(page):
    """Parse a page; each element must be closed."""
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_a_page_has_every_number_of_a_real_file_and_fetches_nothing(read):
    for name in ("train_fn", "grad_of_scan"):
        for profile in (profile for file in read(name) for profile in file):
            reader = parse_page(pages.render_profiles("ntm", [profile]))
            assert reader.fetched == []
            for table in profile.tables.values():
                for row in table.rows:
                    cells = [row.name, f"{row.percent:.1f}", f"{row.seconds:.3f}", "", row.kind]
                    start = reader.cells.index(row.name)
                    while reader.cells[start : start + 5] != cells:
                        start = reader.cells.index(row.name, start + 1)
            for key, value in profile.numbers.items():
                start = reader.cells.index(pages.LABELS[key])
                assert reader.cells[start + 1] == pages.format_number(key, value)


def test_numbers_are_rounded_and_have_units():
    assert set(pages.LABELS) == set(profiles.NUMBERS)
    assert pages.format_number("compile", 1077.7184) == "1,077.718 s"
    assert pages.format_number("nodes", 1288.0) == "1,288"


def test_the_page_of_a_comparison_has_its_numbers(read):
    comparisons = profile_comparison.compare(read("train_fn"))
    reader = parse_page(pages.render_comparison(comparisons, STACKS))
    assert reader.fetched == []
    start = reader.cells.index("calls")
    cells = reader.cells[start + 2 : start + 5]
    assert cells == ["55.918 1.00x", "49.395 0.88x", "48.985 0.88x"]


def test_the_flame_graph_of_a_page_is_json(read):
    page = pages.render_profiles("ntm", [*read("train_fn")[1], *read("grad_of_scan")[1]])
    script = re.search(r'<script type="application/json" id="frames">(.*?)</script>', page)
    tree = json.loads(script[1])
    assert tree["n"] == "ntm"
    assert [child["k"] for child in tree["c"]] == ["compile", ""]


def test_names_are_escaped():
    name = "</script><b>&"
    row = profiles.Row(name, "C", 1.0, 100.0, 1, 1)
    profile = profiles.Profile(
        "Function profiling", 1, 1.0, {}, name, {"Ops": profiles.Table((row,))}
    )
    page = pages.render_profiles(name, [profile])
    assert "<b>" not in page
    assert name in parse_page(page).cells


def test_a_page_has_light_and_dark_colours_and_no_addresses():
    page = pages.make_page("a", ["b"], Frame("c", 1.0))
    assert "color-scheme: light dark" in page
    assert "http" not in page
