"""Build the documentation site from written documents and from pages generated from the code."""
