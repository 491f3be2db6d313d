"""Render formulas as MathML in Sphinx, so that browsers need no script or remote font."""

import html
from collections.abc import Callable
from typing import Any

from docutils import nodes
from latex2mathml import converter


def make_renderer(display: str) -> Callable[[Any, Any], None]:
    """Return the function that writes a formula; ``display`` is "inline" or "block"."""

    def render(writer: Any, node: Any) -> None:
        text = node.astext()
        try:
            writer.body.append(converter.convert(text, display=display))
        # The errors of latex2mathml have no common base class. Write invalid LaTeX as text.
        except Exception:
            writer.body.append(f"<code>{html.escape(text)}</code>")
        raise nodes.SkipNode

    return render


def setup(app: Any) -> None:
    """Register the MathML renderer with Sphinx and select it."""
    app.add_html_math_renderer(
        "mathml", (make_renderer("inline"), None), (make_renderer("block"), None)
    )
    app.config.html_math_renderer = "mathml"
