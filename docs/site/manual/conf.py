"""Configure Sphinx for Theano's manual: the sdist has the text but no Sphinx configuration."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes

sys.path.insert(0, str(Path(__file__).parent))

project = "Theano"
release = version = "1.0.5"
html_title = "Theano 1.0.5's own manual"
author = "LISA lab, University of Montreal"
copyright = "2008-2019, LISA lab"
root_doc = "index"
source_suffix = {".txt": "restructuredtext"}
extensions = [
    *("sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.napoleon", "sphinx.ext.todo"),
    "mathml",
]
# The manual uses these roles, which Theano's own configuration defined.
rst_prolog = "\n".join(f".. role:: {name}" for name in ("red", "pink", "blue"))
html_theme = "furo"
html_copy_source = False
html_show_sourcelink = False


def mend(app: Any, document: nodes.document) -> None:
    """Replace images, which the sdist lacks, by text; remove remote images and error markers."""
    for raw in list(document.findall(nodes.raw)):
        if "src=" in raw.astext():
            raw.parent.remove(raw)
    for problem in list(document.findall(nodes.problematic)):
        problem.parent.replace(problem, nodes.Text(problem.astext()))
    for image in list(document.findall(nodes.image)):
        name = Path(image["uri"]).name
        text = nodes.emphasis("", f"(picture {name}, not in the sdist)")
        inline = isinstance(image.parent, nodes.TextElement)
        image.replace_self(text if inline else nodes.paragraph("", "", text))


def setup(app: Any) -> None:
    """Call ``mend`` at priority 100: before Sphinx collects the images, at priority 500."""
    app.connect("doctree-read", mend, priority=100)
