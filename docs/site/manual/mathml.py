"""Render formulas as MathML in Sphinx, so that browsers need no script or remote font."""

import html
from collections.abc import Callable
from typing import Any

from docutils import nodes
from latex2mathml import converter


def renderer(display: str) -> Callable[[Any, Any], None]:
    """Make the function that writes a formula, with ``display`` "inline" or "block"."""

    def render(writer: Any, node: Any) -> None:
        text = node.astext()
        try:
            writer.body.append(converter.convert(text, display=display))
        except Exception:  # the errors share no class; invalid LaTeX stays as text
            writer.body.append(f"<code>{html.escape(text)}</code>")
        raise nodes.SkipNode

    return render


def setup(app: Any) -> None:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (renderer("inline"), None), (renderer("block"), None))
    app.config.html_math_renderer = "mathml"
