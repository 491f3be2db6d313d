"""For those who work on the project: patches, the age of sources, lint."""
