"""Write profiles as HTML pages: single files that need no network, for light and dark screens."""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from theano_fast import __version__, profiles
from theano_fast.profiling import advice, driver_calls, profile_comparison
from theano_fast.profiling.flame_graph import Frame, build_frames

STATIC = Path(__file__).parent / "static"
LEGEND = (
    '<p class="legend"><span class="C">C</span><span class="Py">Python</span>'
    '<span class="scan">scan</span><span class="compile">compilation</span></p>'
)
# The labels of profiles.NUMBERS.
LABELS = {
    "vm": "calls, in Theano's virtual machine",
    "thunks": "calls, in thunks",
    "compile": "compilation",
    "nodes": "Apply nodes",
    "optimizer": "compilation: optimizer",
    "validate": "compilation: validation of optimized graphs",
    "linker": "compilation: linker",
    "import": "compilation: import of modules",
    "make_thunk": "compilation: creation of thunks",
    "grad": "theano.grad, all calls",
    "since_import": "since the import of Theano",
    "steps": "steps of the scan",
    "scan_vm": "calls, in the scan's virtual machine",
    "scan_overhead": "calls, overhead of the scan",
}
COUNTS = ("nodes", "steps")
escape = html.escape


@cache
def read_static(name: str) -> str:
    """Return the text of a file in static/."""
    return (STATIC / name).read_text(encoding="utf-8")


def make_page(title: str, body: Iterable[str], frames: Frame | None = None) -> str:
    """Return an HTML page.

    Args:
        title: the page's title, as text.
        body: parts of the body, as HTML.
        frames: the frames that the page's script draws in the element of make_flame_graph.
    """
    script = ""
    if frames is not None:
        # Escape "<", because "</script>" in a name would end the script element.
        tree = json.dumps(frames.to_json(), separators=(",", ":")).replace("<", "\\u003c")
        script = (
            f'<script type="application/json" id="frames">{tree}</script>'
            f"<script>{read_static('flame.js')}</script>"
        )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{read_static('style.css')}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n{''.join(body)}"
        f"<footer>theano-fast {__version__}</footer>\n{script}</body></html>\n"
    )


def make_flame_graph() -> str:
    """Return the HTML element in which the page's script draws the frames."""
    return (
        "<h2>Time of functions and ops</h2>\n"
        "<p>Click a frame to zoom in. Click a frame above it to zoom out.</p>"
        f'{LEGEND}<div id="flame"></div><div id="details" aria-live="polite"></div>\n'
    )


def make_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[int] = (0,)
) -> str:
    """Return an HTML table.

    Args:
        heads: the headings of the columns, as text.
        rows: the cells of each row, as HTML.
        texts: the indices of the text columns, which are aligned left; others have numbers.
    """

    def make_row(cells: Sequence[str], tag: str) -> str:
        elements = (
            f"<{tag}{' class=t' if column in texts else ''}>{cell}</{tag}>"
            for column, cell in enumerate(cells)
        )
        return f"<tr>{''.join(elements)}</tr>\n"

    body = "".join(make_row(row, "td") for row in rows)
    head = make_row([escape(text) for text in heads], "th")
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>\n'


def make_bar(fraction: float, kind: str) -> str:
    """Return a bar as HTML.

    Args:
        fraction: the bar's length, from 0 to 1, as a fraction of the cell's width.
        kind: the CSS class, which selects the colour.
    """
    style = f"width:{100 * fraction:.2f}%"
    return f'<span class=bar><i class="{escape(kind)}" style="{style}"></i></span>'


def render_advice(suggestions: Sequence[str], trials: Sequence[advice.Trial]) -> str:
    """Return suggestions and measured remedies as HTML; "" if there are none."""
    body = [f"<p>{escape(suggestion)}</p>\n" for suggestion in suggestions]
    rows = [
        (
            escape(trial.name),
            "-" if trial.factor is None else f"{trial.factor:.2f}",
            escape(trial.reason or trial.where),
        )
        for trial in trials
    ]
    if rows:
        body.append(make_table(("remedy", "speed-up", "how, or error"), rows, texts=(0, 2)))
    return "".join(["<h2>Possible speed-ups</h2>\n", *body]) if body else ""


def render_driver(counts: Mapping[str, Any]) -> str:
    """Return a table of the GPU driver's calls as HTML; "" if there are none."""
    lines = driver_calls.render(counts)
    text = escape("\n".join(lines))
    return f"<h2>Calls of the GPU driver</h2>\n<pre>{text}</pre>\n" if lines else ""


def render_profiles(title: str, parsed: Sequence[profiles.Profile], before: str = "") -> str:
    """Return the page of parsed profiles; ``before`` is HTML for the beginning of the body."""
    body = [before, make_flame_graph()]
    for profile in parsed:
        body.append(
            f"<h2>{escape(profile.name)}</h2>\n"
            f"<p>{profile.calls:,} calls, {profile.seconds:,.3f} s</p>\n"
        )
        numbers = [
            (LABELS[name], format_number(name, value)) for name, value in profile.numbers.items()
        ]
        body.append(make_table(("", "time, or number"), numbers))
        for name, table in profile.tables.items():
            nodes = "node" if name == "Apply" else "nodes"
            heads = ("", "time, %", "time, s", "", "type", "calls", nodes)
            rows = list(map(_make_cells, table.rows))
            if table.omitted:
                rows.append(_make_omitted_cells(table))
            body += [f"<h3>{name}</h3>\n", make_table(heads, rows)]
        body += [f"<p>Theano's tip: {escape(tip)}</p>\n" for tip in profile.tips]
    return make_page(title, body, build_frames(title, parsed))


def format_number(name: str, value: float) -> str:
    """Format a value of profiles.NUMBERS, rounded and with its unit."""
    return f"{value:,.0f}" if name in COUNTS else f"{value:,.3f} s"


def _make_cells(row: profiles.Row) -> tuple[str, ...]:
    kind = "Py" if "Py" in row.kind else row.kind
    return (
        "<br>".join(map(escape, (row.name, *row.notes))),
        f"{row.percent:.1f}",
        f"{row.seconds:.3f}",
        make_bar(row.percent / 100, kind),
        row.kind,
        f"{row.calls:,}",
        str(row.nodes),
    )


def _make_omitted_cells(table: profiles.Table) -> tuple[str, ...]:
    """Return the cells of the row with the sum of the omitted rows."""
    return (
        f"({table.omitted} others)",
        f"{table.omitted_percent:.1f}",
        f"{table.omitted_seconds:.2f}",
        make_bar(table.omitted_percent / 100, ""),
        "",
        "",
        "",
    )


def render_comparison(
    comparisons: Sequence[profile_comparison.Comparison], names: Sequence[str]
) -> str:
    """Return the page of a comparison of several files' profiles."""
    body = [
        '<p class="legend">'
        + "".join(f'<span class="f{i % 4}">{escape(name)}</span>' for i, name in enumerate(names))
        + "</p>\n<p>Each cell has seconds, and their ratio to the first file.</p>\n"
    ]
    for comparison in comparisons:
        calls = ", ".join(f"{count:,}" for count in comparison.calls)
        body.append(f"<h2>{escape(comparison.name)}</h2>\n<p>{calls} calls</p>\n")
        for heading, lines in (("Totals", comparison.numbers), ("Classes", comparison.classes)):
            body.append(f"<h3>{heading}</h3>\n{_render_lines(lines, names, heading == 'Classes')}")
    return make_page(" against ".join(names), body)


def _render_lines(
    lines: Sequence[profile_comparison.Line], names: Sequence[str], common: bool
) -> str:
    """Return an HTML table of lines with bars.

    Args:
        lines: the compared quantities.
        names: the labels of the files.
        common: whether all lines have the same scale; otherwise each line has its own scale.
    """
    longest = max((value or 0.0 for line in lines for value in line.seconds), default=0.0)
    rows = []
    for line in lines:
        scale = longest if common else max(value or 0.0 for value in line.seconds)
        bars = "".join(
            make_bar((value or 0.0) / scale if scale else 0.0, f"f{file % 4}")
            for file, value in enumerate(line.seconds)
        )
        pairs = zip(line.seconds, line.ratios, strict=True)
        cells = [profile_comparison.format_cell(*pair) for pair in pairs]
        kinds = " ".join(dict.fromkeys(kind for kind in line.kinds if kind))
        rows.append((escape(line.name), kinds, *cells, bars))
    return make_table(("", "type", *(f"{name}, s" for name in names), ""), rows)
