"""Sphinx's configuration of the site that ``invoke docs`` makes of docs/ and the documents."""

project = "theano-fast"
html_title = project
root_doc = "index"
extensions = ["myst_parser"]
# Links to headings, as in GitHub's view of the same files.
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
# Commands are copied as they are: no quotes or dashes of a printer's.
smartquotes = False
