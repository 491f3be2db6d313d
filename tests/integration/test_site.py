"""Test the links of the site that ``./invoke docs --serve`` serves, and its pages in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from support import find_free_port, require

from builder.common import paths
from builder.common.errors import CommandFailed
from builder.documents import site
from builder.options import Options

HTML = paths.BUILD / "site" / "html"
# The size of a telephone's screen, in pixels.
NARROW = {"width": 360, "height": 740, "pixelRatio": 1.0}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Build and serve the site without Theano's manual; yield its address."""
    port = find_free_port()
    command = [sys.executable, "tasks.py", "docs", "--serve", f"--port={port}", "--no-manual"]
    with subprocess.Popen(
        command, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        lines: list[str] = []
        for line in iter(process.stdout.readline, ""):
            lines.append(line)
            if "Ctrl-C" in line:
                break
        else:
            pytest.fail("".join(lines))
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: is_reachable(address), "the server")
        yield address
        os.killpg(process.pid, signal.SIGTERM)


def is_reachable(address: str) -> bool:
    """Return whether a server answers a request for an address with status 200."""
    try:
        with urllib.request.urlopen(address) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for(condition: Any, description: str) -> Any:
    """Call ``condition`` until its result is true; return the result.

    After 60 s, fail the test with the ``description`` of the missing result.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.2)
    return pytest.fail(f"timeout after a minute: {description}")


class Page(HTMLParser):
    """A parsed page: the targets of its links, the files that it loads, and its anchors."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.add(attributes["href"])
        elif target := attributes.get("src") or (tag == "link" and attributes.get("href")):
            self.loaded.add(target)


@pytest.mark.usefixtures("address")
def test_every_link_works_and_no_file_is_external() -> None:
    pages = {file: Page(file) for file in HTML.glob("*.html")}
    assert len(pages) > 20
    broken = []
    for file, page in pages.items():
        for link in page.links | page.loaded:
            if re.match("(https?|mailto):", link) and link not in page.loaded:
                continue
            name, _, anchor = unquote(link.partition("?")[0]).partition("#")
            target = file.parent / name if name else file
            if not target.is_file() or (anchor and anchor not in pages[target].anchors):
                broken.append(f"{file.name}: {link}")
    for sheet in HTML.rglob("*.css"):
        broken += re.findall(r"@import.*|url\(['\"]?(?:https?:)?//.*", sheet.read_text("utf-8"))
    assert broken == []


def test_a_broken_link_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str) -> None:
    monkeypatch.setattr(site, "SITE", tmp_path)
    (tmp_path / "venv").symlink_to(paths.BUILD / "site" / "venv")
    site.build_site({"tasks.md": "# Tasks\n\n[x](start.md#next-steps)\n"}, False, Options())
    with pytest.raises(CommandFailed):
        site.build_site({"tasks.md": "# Tasks\n\n[x](start.md#or-never)\n"}, False, Options())


# A page in the form of Theano's manual, with missing pictures, an external picture, and formulas.
# The formula \frac is invalid.
MANUAL = r"""
Here
====

.. figure:: gone.png

   Its caption

A picture |p|, py_, :math:`x^{2}`, and :math:`\frac`.

.. math:: y = \sum_i x_i

.. |p| image:: gone.*

.. raw:: html

   <img src="https://example.org/x.svg" />
"""


@pytest.mark.usefixtures("address")
def test_the_manual_has_formulas_and_replacements_for_pictures(tmp_path: Path) -> None:
    (tmp_path / "index.txt").write_text(MANUAL)
    python = paths.BUILD / "site" / "venv" / "bin" / "python"
    configuration = site.CONFIGURATION / "manual"
    command = [python, "-m", "sphinx", "-q", "-c", configuration, tmp_path, tmp_path / "html"]
    subprocess.run(command, check=True)
    page = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    assert page.count("gone.") == 2
    assert "problematic" not in page
    assert "<img" not in page
    assert "<msup>" in page
    assert 'display="block"' in page
    assert r"<code>\frac</code>" in page


class Browser:
    """A browser that chromedriver controls: a session of the WebDriver protocol.

    ``driver`` is the address of chromedriver. ``options`` extend ``goog:chromeOptions``.
    """

    def __init__(self, driver: str, options: dict[str, Any]) -> None:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        flags += ["--window-size=1300,1000"]
        capabilities = {"goog:chromeOptions": {"args": flags, **options}}
        self.driver = driver
        # The path of the session; a command without a session creates one.
        self.session = ""
        session = self.send("", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/{session['sessionId']}"

    def send(self, command: str, parameters: dict[str, Any]) -> Any:
        """Send a command of the WebDriver protocol; return the value in the answer."""
        address = f"{self.driver}/session{self.session}{command}"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(address, json.dumps(parameters).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, address: str) -> None:
        """Load a page."""
        self.send("/url", {"url": address})

    def run(self, script: str) -> Any:
        """Run the body of a JavaScript function in the page; return its result."""
        return self.send("/execute/sync", {"script": script, "args": []})

    def close(self) -> None:
        """End the session."""
        address = f"{self.driver}/session{self.session}"
        urllib.request.urlopen(urllib.request.Request(address, method="DELETE"), timeout=60)


@pytest.fixture(scope="module")
def driver() -> Iterator[str]:
    """Start chromedriver; yield its address."""
    require("chromium", "chromedriver")
    port = find_free_port()
    with subprocess.Popen(
        [str(shutil.which("chromedriver")), f"--port={port}"], stdout=subprocess.DEVNULL
    ) as process:
        wait_for(lambda: is_reachable(f"http://127.0.0.1:{port}/status"), "chromedriver")
        yield f"http://127.0.0.1:{port}"
        process.terminate()


@pytest.fixture
def browser(driver: str, request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Open a browser; a test's parameter ``browser`` extends the options."""
    opened = Browser(driver, getattr(request, "param", {}))
    yield opened
    opened.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("amdlibm-archive", "tasks.html"),
        ("kept shapes pseudo inverse", "upstream-bugs.html"),
        ("old GPU back end", "old-programs.html"),
    ],
)
def test_search_finds_a_page(browser: Browser, address: str, words: str, page: str) -> None:
    browser.open(f"{address}/search.html?q={words.replace(' ', '+')}")
    script = "return [...document.querySelectorAll('ul.search li a')].map(a => a.href)"
    links = wait_for(lambda: browser.run(script), "a result")
    wait_for(
        lambda: any(page in link for link in browser.run(script)),
        f"{page} among {links}",
    )


def measure_luminance(browser: Browser, property_name: str) -> float:
    """Return the mean of red, green and blue, 0 to 255, of a CSS color of the page's body."""
    color = browser.run(f"return getComputedStyle(document.body).{property_name}")
    return sum(map(float, re.findall(r"[\d.]+", color)[:3])) / 3


def test_the_toggle_switches_light_and_dark_colours(browser: Browser, address: str) -> None:
    """A light page has dark text, and a dark page has light text."""
    browser.open(f"{address}/index.html")
    brightness = {}
    for _ in range(3):
        browser.run("document.querySelector('.content-icon-container .theme-toggle').click()")
        mode = browser.run("return document.body.dataset.theme")
        brightness[mode] = [
            measure_luminance(browser, property_name)
            for property_name in ("backgroundColor", "color")
        ]
    (page, text), (dark_page, dark_text) = brightness["light"], brightness["dark"]
    assert page > 200
    assert text < 100
    assert dark_page < 100
    assert dark_text > 150


@pytest.mark.parametrize("browser", [{"mobileEmulation": {"deviceMetrics": NARROW}}], indirect=True)
def test_pages_and_menu_fit_a_narrow_screen(browser: Browser, address: str) -> None:
    """No page is wider than a telephone's screen; the menu is hidden until a click opens it."""
    wide = {}
    for file in sorted(HTML.glob("*.html")):
        browser.open(f"{address}/{file.name}")
        if (width := browser.run("return document.documentElement.scrollWidth")) > NARROW["width"]:
            wide[file.name] = width
    assert wide == {}
    browser.open(f"{address}/index.html")
    script = "return document.querySelector('.sidebar-drawer').getBoundingClientRect().left"
    assert browser.run(script) < 0
    browser.run("document.querySelector('label.nav-overlay-icon').click()")
    wait_for(lambda: browser.run(script) == 0, "the menu")
