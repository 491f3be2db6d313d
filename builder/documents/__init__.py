"""Build the documentation site: written documents, and pages generated from the code."""
