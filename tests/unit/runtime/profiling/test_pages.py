import json
import re
from html.parser import HTMLParser

from theano_fast import profiles
from theano_fast.profiling import comparing, pages
from theano_fast.profiling.frames import Frame

from tests.unit.runtime.profiling.conftest import STACKS


class Reader(HTMLParser):
    """Collects a page's cells, and what it would fetch."""

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


def parsed(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_a_page_has_every_number_of_a_real_file_and_fetches_nothing(read):
    for name in ("train_fn", "grad_of_scan"):
        for profile in (each for file in read(name) for each in file):
            reader = parsed(pages.of_read("ntm", [profile]))
            assert reader.fetched == []
            for table in profile.tables.values():
                for row in table.rows:
                    cells = [row.name, f"{row.percent:.1f}", f"{row.seconds:.3f}", "", row.kind]
                    at = reader.cells.index(row.name)
                    while reader.cells[at : at + 5] != cells:
                        at = reader.cells.index(row.name, at + 1)
            for value in profile.numbers.values():
                assert f"{value:.15g}" in reader.cells


def test_a_comparisons_page_has_its_numbers(read):
    compared = comparing.compare(read("train_fn"))
    reader = parsed(pages.of_compared(compared, STACKS))
    assert reader.fetched == []
    at = reader.cells.index("calls")
    assert reader.cells[at + 2 : at + 5] == ["55.918 1.00x", "49.395 0.88x", "48.985 0.88x"]


def test_the_frames_of_a_page_are_json(read):
    page = pages.of_read("ntm", [*read("train_fn")[1], *read("grad_of_scan")[1]])
    found = re.search(r'<script type="application/json" id="frames">(.*?)</script>', page)
    tree = json.loads(found[1])
    assert tree["n"] == "ntm"
    assert [child["k"] for child in tree["c"]] == ["compile", ""]


def test_names_cannot_become_elements():
    name = "</script><b>&"
    row = profiles.Row(name, "C", 1.0, 100.0, 1, 1)
    profile = profiles.Profile(
        "Function profiling", 1, 1.0, {}, name, {"Ops": profiles.Table((row,))}
    )
    page = pages.of_read(name, [profile])
    assert "<b>" not in page
    assert name in parsed(page).cells


def test_a_page_is_for_light_and_dark_screens():
    page = pages.document("a", ["b"], Frame("c", 1.0))
    assert "color-scheme: light dark" in page
    assert "http" not in page
