"""Configure Sphinx for the documentation site, which ``./invoke docs`` builds."""

project = "theano-fast"
html_title = project
root_doc = "index"
extensions = ["myst_parser"]
# Give headings the anchors that GitHub gives them.
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
# Readers copy commands: do not convert quotes and dashes.
smartquotes = False
