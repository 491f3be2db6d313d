"""Pages of profiles: one HTML file each, which needs no network, for light and dark screens."""

import html
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from theano_fast import __version__, profiles
from theano_fast.profiling import advice, comparing
from theano_fast.profiling.frames import Frame, of_profiles

STATIC = Path(__file__).parent / "static"
LEGEND = (
    '<p class="legend"><span class="C">C</span><span class="Py">Python</span>'
    '<span class="scan">scan</span><span class="compile">compilation</span></p>'
)
escape = html.escape


@cache
def static(name: str) -> str:
    """Return the text of a file in static/."""
    return (STATIC / name).read_text(encoding="utf-8")


def document(title: str, body: Iterable[str], frames: Frame | None = None) -> str:
    """Return a page; with frames, its script draws them where flame() is in the body."""
    script = ""
    if frames is not None:
        # A "</script>" in a name would end the element.
        tree = json.dumps(frames.tree(), separators=(",", ":")).replace("<", "\\u003c")
        script = (
            f'<script type="application/json" id="frames">{tree}</script>'
            f"<script>{static('flame.js')}</script>"
        )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{static('style.css')}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n{''.join(body)}"
        f"<footer>theano-fast {__version__}</footer>\n{script}</body></html>\n"
    )


def flame() -> str:
    """Return the place where the page's script draws its frames."""
    return (
        "<h2>Where the time went</h2>\n"
        "<p>A click on a frame makes it as wide as the page; one above it goes back.</p>"
        f'{LEGEND}<div id="flame"></div><div id="told" aria-live="polite"></div>\n'
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[int] = (0,)) -> str:
    """Return a table of cells that are HTML; the columns in texts are text, others numbers."""

    def line(cells: Sequence[str], tag: str) -> str:
        made = (
            f"<{tag}{' class=t' if column in texts else ''}>{cell}</{tag}>"
            for column, cell in enumerate(cells)
        )
        return f"<tr>{''.join(made)}</tr>\n"

    body = "".join(line(row, "td") for row in rows)
    head = line([escape(each) for each in heads], "th")
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>\n'


def bar(part: float, kind: str) -> str:
    """Return a bar of this part, from 0 to 1, of a cell's width."""
    return f'<span class=bar><i class="{escape(kind)}" style="width:{100 * part:.2f}%"></i></span>'


def of_advice(told: Sequence[str], tries: Sequence[advice.Tried]) -> str:
    """Return what would be faster, as tables; nothing of nothing."""
    body = [f"<p>{escape(each)}</p>\n" for each in told]
    rows = [
        (
            escape(each.name),
            "-" if each.factor is None else f"{each.factor:.2f}",
            escape(each.told or each.where),
        )
        for each in tries
    ]
    if rows:
        body.append(table(("tried", "times as fast", ""), rows, texts=(0, 2)))
    return "".join(["<h2>What would be faster</h2>\n", *body]) if body else ""


def of_read(title: str, read: Sequence[profiles.Profile], before: str = "") -> str:
    """Return the page of profiles that were read from Theano's text, behind other HTML."""
    body = [before, flame()]
    for each in read:
        body.append(
            f"<h2>{escape(each.name)}</h2>\n<p>{each.calls} calls, {each.seconds:.3f} s</p>\n"
        )
        numbers = [(escape(name), f"{value:.15g}") for name, value in each.numbers.items()]
        body.append(table(("", "seconds, or number"), numbers))
        for name, its in each.tables.items():
            body.append(f"<h3>{name}</h3>\n")
            body.append(
                table(
                    (
                        "",
                        "%",
                        "seconds",
                        "",
                        "type",
                        "calls",
                        "node" if name == "Apply" else "nodes",
                    ),
                    [*map(_cells, its.rows), _left(its)],
                )
            )
        body += [f"<p>Theano's tip: {escape(tip)}</p>\n" for tip in each.tips]
    return document(title, body, of_profiles(title, read))


def _cells(row: profiles.Row) -> tuple[str, ...]:
    kind = "Py" if "Py" in row.kind else row.kind
    return (
        "<br>".join(map(escape, (row.name, *row.notes))),
        f"{row.percent:.1f}",
        f"{row.seconds:.3f}",
        bar(row.percent / 100, kind),
        row.kind,
        str(row.calls),
        str(row.nodes),
    )


def _left(its: profiles.Table) -> tuple[str, ...]:
    seconds = f"{its.left_seconds:.2f}"
    return (
        f"({its.left} others)",
        f"{its.left_percent:.2f}",
        seconds,
        bar(its.left_percent / 100, ""),
        "",
        "",
        "",
    )


def of_compared(compared: Sequence[comparing.Comparison], names: Sequence[str]) -> str:
    """Return the page of profiles of the same program, side by side."""
    body = [
        '<p class="legend">'
        + "".join(f'<span class="f{i % 4}">{escape(name)}</span>' for i, name in enumerate(names))
        + "</p>\n"
    ]
    for each in compared:
        calls = ", ".join(map(str, each.calls))
        body.append(f"<h2>{escape(each.name)}</h2>\n<p>{calls} calls</p>\n")
        for heading, lines in (("Totals", each.numbers), ("Classes", each.classes)):
            body.append(f"<h3>{heading}</h3>\n{_lines(lines, names, heading == 'Classes')}")
    return document(" against ".join(names), body)


def _lines(lines: Sequence[comparing.Line], names: Sequence[str], common: bool) -> str:
    """Return a table of lines; bars are of the longest of all lines, or each of its own."""
    longest = max((each or 0.0 for line in lines for each in line.seconds), default=0.0)
    rows = []
    for line in lines:
        of = longest if common else max(each or 0.0 for each in line.seconds)
        bars = "".join(
            bar((each or 0.0) / of if of else 0.0, f"f{file % 4}")
            for file, each in enumerate(line.seconds)
        )
        cells = [comparing.shown(*cell) for cell in zip(line.seconds, line.ratios, strict=True)]
        kinds = " ".join(dict.fromkeys(kind for kind in line.kinds if kind))
        rows.append((escape(line.name), kinds, *cells, bars))
    return table(("", "type", *(f"{name}, s" for name in names), ""), rows)
