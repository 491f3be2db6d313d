"""Draw charts of stacked bars as SVG, readable on light and on dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

# The palette of Okabe and Ito; colour-blind readers can distinguish its colours.
COLOURS = ("#999999", "#56b4e9", "#e69f00", "#d55e00", "#cc79a7", "#009e73")
STYLE = """<style>
text { font: 13px sans-serif; fill: #1f2328 }
.title { font-weight: bold }
.value { font-size: 12px }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } }
</style>"""
# Widths in pixels: a bar's label, the longest bar, and the text of a bar's total.
LABEL, BAR, VALUE = 190, 520, 90
# Heights in pixels: a bar with its margin, a group's heading, and a margin.
ROW, HEADING, GAP = 20, 28, 10

# Seconds by name of the bar and by phase.
Bars = Mapping[str, Mapping[str, float]]


def draw_stacked_bars(title: str, phases: Sequence[str], groups: Mapping[str, Bars]) -> str:
    """Return an SVG document with groups of bars; the longest bar of each group has full width.

    Args:
        title: the text above the chart.
        phases: all phases, in the order of the legend; at most len(COLOURS).
        groups: seconds by name of the group, name of the bar and phase.
    """
    colours = dict(zip(phases, COLOURS, strict=False))
    parts = [_draw_text(0, 16, title, "title"), *_draw_legend(colours, 40)]
    y = 40 + GAP
    for name, bars in groups.items():
        y += HEADING
        parts.append(_draw_text(0, y - GAP, name, "title"))
        longest = max((sum(bar.values()) for bar in bars.values()), default=0)
        for label, bar in bars.items():
            parts += _draw_bar(y, label, bar, BAR / longest if longest else 0, colours)
            y += ROW
    width, height = LABEL + BAR + VALUE, y + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">'
    )
    return "\n".join([head, STYLE, *parts, "</svg>"]) + "\n"


def _draw_legend(colours: Mapping[str, str], y: int) -> list[str]:
    parts = []
    for i, (phase, colour) in enumerate(colours.items()):
        x = 110 * i
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        parts.append(_draw_text(x + 18, y, phase))
    return parts


def _draw_bar(
    y: int, label: str, bar: Mapping[str, float], scale: float, colours: Mapping[str, str]
) -> list[str]:
    parts = [_draw_text(0, y + 13, label)]
    x = float(LABEL)
    for phase, seconds in bar.items():
        width = seconds * scale
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 4}" '
            f'fill="{colours[phase]}"/>'
        )
        x += width
    return [*parts, _draw_text(x + 6, y + 13, f"{sum(bar.values()):.1f} s", "value")]


def _draw_text(x: float, y: int, text: str, style: str = "") -> str:
    attribute = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y}"{attribute}>{escape(text)}</text>'
