"""Formulas as MathML, which browsers draw themselves: no script, no font from elsewhere."""

import html
from collections.abc import Callable
from typing import Any

from docutils import nodes
from latex2mathml import converter


def renderer(display: str) -> Callable[[Any, Any], None]:
    """Make what writes a formula, within a line or as a "block" of its own."""

    def render(writer: Any, node: Any) -> None:
        text = node.astext()
        try:
            writer.body.append(converter.convert(text, display=display))
        except Exception:  # of no common class: it is no whole LaTeX, and stays as it is
            writer.body.append(f"<code>{html.escape(text)}</code>")
        raise nodes.SkipNode

    return render


def setup(app: Any) -> None:
    """Be called by Sphinx."""
    app.add_html_math_renderer("mathml", (renderer("inline"), None), (renderer("block"), None))
    app.config.html_math_renderer = "mathml"
